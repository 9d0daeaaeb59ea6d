# frozen_string_literal: true

require "ringspun/jobs"
require_relative "metrics"
require_relative "web/markup"
require_relative "web/request"
require_relative "web/forgery"
require_relative "web/admission"
require_relative "web/assets"
require_relative "web/job_text"
require_relative "web/searched"
require_relative "web/place"
require_relative "web/filter"
require_relative "web/sampler"
require_relative "web/shared"
require_relative "web/chart"
require_relative "web/pages/page"
require_relative "web/pages/dashboard"
require_relative "web/pages/queues"
require_relative "web/pages/listing"
require_relative "web/pages/busy"
require_relative "web/pages/processes"
require_relative "web/pages/schedule"
require_relative "web/pages/job_page"
require_relative "web/pages/search_page"
require_relative "web/pages/done_table"
require_relative "web/pages/done_page"
require_relative "web/pages/classes"
require_relative "web/pages/class_page"
require_relative "web/pages/trouble"
require_relative "web/actions"
require_relative "web/server"

module Ringspun
  module Jobs
    # The web pages, on which people see jobs and steer them: a Rack app, which needs no other gem.
    #
    #   require "ringspun/jobs/web"
    #
    #   Ringspun::Jobs::Web.authenticate { |env| env["warden"].user&.admin? }
    #   run Ringspun::Jobs::Web.new # in config.ru; or, in the routes of Rails: mount Ringspun::Jobs::Web.new, at: "/jobs"
    #
    # @since 0.1.0
    class Web
      # On every answer. Scripts and styles come from here only, and nobody may put the pages into a frame.
      HEADERS = {
        "content-security-policy" => "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
                                     "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "x-content-type-options" => "nosniff", "x-frame-options" => "DENY", "referrer-policy" => "same-origin",
        "cross-origin-opener-policy" => "same-origin", "cross-origin-resource-policy" => "same-origin"
      }.freeze

      # Seconds after which a browser asks again for a page that the storage was away for.
      AGAIN_SECONDS = 5

      HTML = "text/html; charset=utf-8"

      # The pages that need to know nothing else.
      PAGES = { "/" => Dashboard, "/queues" => Queues, "/busy" => Busy, "/processes" => Processes, "/job" => JobPage,
                "/cron" => Schedule, "/search" => SearchPage, "/done" => DonePage, "/classes" => Classes,
                "/class" => ClassPage }.freeze
      private_constant :AGAIN_SECONDS, :HTML, :PAGES

      # Says who may see the pages of every {Web} that is not told otherwise.
      #
      # @yieldparam env [Hash] of Rack
      # @yieldreturn [Boolean, Array] whether they may; or an answer of Rack's, such as one that leads to where they say who they
      #   are
      # @return [nil]
      # @since 0.1.0
      def self.authenticate(&block)
        @check = block
        nil
      end

      # @return [Proc, nil]
      # @api private
      def self.check = @check

      # Serves the pages by a web server that is here, until this process gets INT or TERM.
      #
      # @param storage [Storage]
      # @param host [String]
      # @param port [Integer]
      # @yieldparam url [String]
      # @return [nil]
      # @raise [ConfigError]
      # @raise [SystemCallError] it cannot listen there
      # @api private
      def self.serve(storage, host, port, &) = Server.new(new(storage:), host, port).run(&)

      # @param authenticate [#call, :outside, nil] as the block of {.authenticate}; :outside: something in front of the pages says
      #   who may see them; nil: the block of {.authenticate}
      # @param storage [Storage, nil] nil: that of the settings
      # @raise [ConfigError] nobody says who may see them, and this is neither development nor test: by Rails, or else by APP_ENV,
      #   RAILS_ENV and RACK_ENV
      # @since 0.1.0
      def initialize(authenticate: nil, storage: nil)
        @admission = Admission.new(authenticate || Web.check)
        @storage = storage
        @sampler = Sampler.new { self.storage }
        @shared = Shared.new
      end

      # Answers a request. May switch strands. May be called by many threads and strands at the same time.
      #
      # @param env [Hash] of Rack
      # @return [Array(Integer, Hash, Array<String>)]
      # @since 0.1.0
      def call(env)
        request = Request.new(env)
        status, headers, body = answer(request)
        [status, headers, request.verb == "HEAD" ? [] : body]
      end

      private

      def storage = @storage || Jobs.storage

      def answer(request)
        return plain(400, "The path at which these pages are mounted, or the path in them, makes no sense.") unless request.sound?

        judged = @admission.judge(request)
        return judged if judged.is_a?(Array)
        return plain(403, judged) if judged.is_a?(String)

        static = Assets.answer(request.path)
        return [static[0], HEADERS.merge(static[1]), static[2]] if static

        dispatch(request)
      rescue Request::TooLong
        plain(413, "The form is too long.")
      end

      def dispatch(request)
        kept = begin
          storage
        rescue Error => error
          return plain(503, "The storage cannot be used: #{error.message}")
        end
        view = View.new(request, kept, @sampler, Forgery.new(request), @shared)
        case request.verb
        when "GET", "HEAD" then show(view)
        when "POST" then press(view)
        else plain(405, "There is nothing for #{request.verb.inspect} here.", "allow" => "GET, HEAD, POST")
        end
      rescue UnavailableError, UnknownOutcomeError, StorageError => error
        away(view, error)
      end

      def show(view)
        return part(Dashboard.new(view)) if view.request.path == "/live"
        return part(Busy.new(view)) if view.request.path == "/busy" && view.request[:part]

        page(view, page_for(view) || Trouble.new(view, 404, "There is no such page", "The menu has all that there are."))
      end

      def page_for(view)
        path = view.request.path
        return PAGES[path].new(view) if PAGES.key?(path)

        place = case path
                when "/quarantine" then Place.new(Storage::QUARANTINE)
                when "/queue" then Place.asked(view.request)
                else Place::SETS[path.delete_prefix("/")]&.then { |set| Place.new(set) }
                end
        place && Listing.new(view, place)
      end

      def page(view, page, **headers)
        html = page.html
        cookie = view.forgery.cookie
        [page.status, { **common, **headers, **(cookie ? { "set-cookie" => cookie } : {}) }, [html]]
      end

      def part(page) = [200, common, [page.part]]

      def common = { **HEADERS, "content-type" => HTML, "cache-control" => "no-store" }

      def press(view)
        doubt = view.forgery.doubt
        return page(view, Trouble.new(view, 403, "Nothing was done", "This request was refused: #{doubt}.")) if doubt

        path, query = Actions.new(view).call
        return page(view, Trouble.new(view, 400, "Nothing was done", "There is no such button.")) unless path

        pairs = query.map { |name, value| "#{name}=#{Request.encode(value)}" }
        [303, { **common, "location" => "#{view.request.base}#{path}?#{pairs.join("&")}" }, []]
      rescue ConfigError, InvalidJobError => error
        page(view, Trouble.new(view, 409, "Nothing was done", error.message))
      end

      def away(view, error)
        text = case error
               when UnavailableError then "The storage cannot be reached, so nothing is shown, and nothing was done"
               when UnknownOutcomeError then "No answer came: it may be done or not"
               else "The storage has refused"
               end
        again = view.request.verb == "POST" ? {} : { "refresh" => AGAIN_SECONDS.to_s }
        page(view, Trouble.new(view, 503, "The storage is away", "#{text}: #{error.message}"),
             "retry-after" => AGAIN_SECONDS.to_s, **again)
      end

      def plain(status, text, headers = {})
        [status, { **common, "content-type" => "text/plain; charset=utf-8", **headers }, ["#{text}\n"]]
      end
    end
  end
end
