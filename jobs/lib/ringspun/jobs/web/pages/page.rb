# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What a page is made from.
      #
      # @api private
      View = Struct.new(:request, :storage, :sampler, :forgery, :shared)
      private_constant :View

      # One page, in the frame that all have.
      #
      # @api private
      class Page
        # The pages that every page has links to.
        MENU = { "/" => "Dashboard", "/queues" => "Queues", "/busy" => "Busy", "/scheduled" => "Scheduled",
                 "/retries" => "Retries", "/dead" => "Dead", "/done" => "Done", "/quarantine" => "Quarantine",
                 "/classes" => "Classes", "/processes" => "Processes", "/cron" => "Cron", "/search" => "Search" }.freeze

        # What has happened, for whoever has pressed a button.
        NOTICES = {
          "retry" => "enqueued", "kill" => "among the dead now", "delete" => "deleted", "cancel" => "asked to end",
          "pause" => "paused", "resume" => "going on", "clear" => "deleted", "quiet" => "told to fetch no more jobs",
          "stop" => "told to stop", "run" => "enqueued"
        }.freeze

        # What shows nothing: spaces of any kind, and marks for how text is laid out.
        BLANK = /\A[\p{Space}\p{Cf}]*\z/

        # @param view [View]
        def initialize(view)
          @view = view
          @markup = Markup.new
        end

        # @return [Integer] of HTTP
        def status = 200

        # @return [String] the whole page
        def html
          part = self.class.new_markup { |markup| with(markup) { content } }
          frame(part)
          @markup.document
        end

        # @return [String] what is inside the frame, for the script that shows it anew
        def part
          live
          @markup.to_s
        end

        def self.new_markup
          markup = Markup.new
          yield markup
          markup
        end

        private

        attr_reader :markup

        alias m markup

        def request = @view.request

        def storage = @view.storage

        def sample = @view.sampler.last

        def with(markup)
          before, @markup = @markup, markup
          yield
        ensure
          @markup = before
        end

        # The frame comes last, for what is in it may fail.
        def frame(part)
          m.html(lang: "en") do
            m.head { head }
            m.body do
              m.a("To the content", href: "#content", class: "skip")
              m.header { m.nav(aria_label: "Pages") { m.ul { menu } } }
              m.main(id: "content", tabindex: "-1") do
                notice
                m.h1(title)
                m.add(part)
              end
            end
          end
        end

        def head
          m.meta(charset: "utf-8")
          m.meta(name: "viewport", content: "width=device-width, initial-scale=1")
          m.title("#{title} · Jobs")
          m.link(rel: "stylesheet", href: url(Assets.path("css")))
          m.script(src: url(Assets.path("js")), defer: true)
        end

        def menu
          counts = menu_counts
          MENU.each do |path, name|
            m.li do
              m.a(href: url(path), aria_current: ("page" if path == request.path)) do
                m.say(name)
                m.small(" #{number(counts[path])}") if counts[path]
              end
            end
          end
        end

        def menu_counts
          stats = sample.stats
          { "/queues" => stats[:enqueued], "/busy" => sample.nodes.sum { |node| node["busy"].to_i },
            "/scheduled" => stats[:scheduled],
            "/retries" => stats[:retries], "/dead" => stats[:dead],
            "/quarantine" => stats[:queues].fetch(Storage::QUARANTINE, 0), "/processes" => sample.nodes.size }
        end

        def notice
          said = NOTICES[request[:said]] or return
          done, gone, left = %i[n gone left].map { |name| request.number(name) }
          m.p(class: "notice#{" bad" if gone.positive?}", role: "status") do
            m.say("#{number(done)} #{said}. ") if done.positive? || gone.zero?
            m.say("Not there any more: #{number(gone)}. Somebody else was faster. ") if gone.positive?
            m.say("There are more: press again.") if left.positive?
          end
        end

        # @return [String] for a link
        def url(path, **query)
          pairs = query.compact.map { |name, value| "#{name}=#{Request.encode(value)}" }
          "#{request.base}#{path}#{"?#{pairs.join("&")}" if pairs.any?}"
        end

        # A form without fields of its own has all in its path, where any bytes survive.
        def form(path, **query)
          m.form(method: "post", action: url(path, **query)) do
            m.input(type: "hidden", name: Forgery::NAME, value: @view.forgery.secret)
            yield
          end
        end

        def button(text, act, label: nil, danger: false)
          m.button(text, type: "submit", name: "act", value: act, aria_label: label, class: ("danger" if danger))
        end

        # @param heads [Hash{String => String, nil}] columns and their classes
        def table(caption, heads, rows)
          return m.p("There are none.", class: "soft") if rows.empty?

          m.table do
            m.caption(caption)
            m.thead { m.tr { heads.each { |name, kind| m.th(name, scope: "col", class: kind) } } }
            m.tbody { rows.each { |row| m.tr { yield row } } }
          end
        end

        # On a phone each cell has its label beside it, so all that it has is in one element.
        def cell(label, *texts, kind: nil, &block)
          m.td(data_label: label, class: kind) { m.span(*texts, &block) }
        end

        def row_head(label, *texts, &block)
          m.th(scope: "row", data_label: label) { m.span(*texts, &block) }
        end

        def facts(all)
          m.dl(class: "facts") do
            all.each do |name, value|
              next if value.nil?

              m.dt(name)
              m.dd { value.respond_to?(:call) ? value.call : m.say(value) }
            end
          end
        end

        # @return [String] as "1 job" or "2 jobs"
        def count(value, one, many = "#{one}s") = "#{number(value)} #{Words.noun(value, one, many)}"

        # @return [String] the name of a queue; in quotes where else there would be nothing to see or to click
        def shown(queue)
          text = Markup.plain(queue)
          text.match?(BLANK) ? queue.to_s.inspect : text
        end

        def queue_link(queue) = m.a(shown(queue), href: url("/queue", place: "queue", queue: queue))

        def number(value) = Words.number(value)

        def duration(seconds) = seconds ? Words.duration(seconds) : "unknown"

        # See {Chart#initialize} for the parameters.
        def chart(title, seconds, lines, now, &)
          m.section do
            m.h2(title)
            Chart.new(title, seconds, lines, now, &).draw(m)
          end
        end

        def short(value) = value < 10 ? value.round(1) : number(value.round)

        # @param measure [Storage::Measure]
        # @return [String] how many have failed, and of how many that is a share
        def failures(measure)
          share = 100.0 * measure.failed / measure.processed
          return number(measure.failed) unless measure.failed.positive?

          "#{number(measure.failed)} (#{share < 1 ? "under 1" : share.round} %)"
        end

        # @param share [Float] of the jobs that have not failed
        # @return [String] a duration below which this share of them were
        def below(measure, share)
          return "none" unless measure.histogram.each_value.any?(&:positive?)

          milliseconds = measure.below(share)
          milliseconds ? duration(milliseconds / 1000.0) : "over #{duration(Storage::LIMITS_MS.last / 1000.0)}"
        end

        # @param at [Float, nil] seconds since the epoch
        def time(at)
          return m.say("unknown") unless at && at.abs < Wire::MILLISECONDS_FROM

          iso = Time.at(at).utc.strftime("%Y-%m-%dT%H:%M:%SZ")
          gap = at - Time.now.to_f
          m.time(gap.positive? ? "in #{duration(gap)}" : "#{duration(gap)} ago", datetime: iso, title: iso)
        end

        def tags(job) = job.tags.each { |tag| m.span(tag, class: "tag") }

        def job_link(job, place, at, token)
          m.a(job.name, href: url("/job", **place.query, at: at, key: Place.key(token), jid: job.jid))
          m.say(" ")
          tags(job)
        end

        # A checkbox stays for a person who has the script to stop it; without the script it is not there.
        def live_part(path, **query)
          m.p(class: "buttons", hidden: true) do
            m.label(for: "live") do
              m.input(type: "checkbox", id: "live", checked: true)
              m.say("Live")
            end
            m.span(id: "live-state", class: "soft", role: "status")
          end
          m.div(data_live: url(path, **query)) { live }
        end
      end
      private_constant :Page
    end
  end
end
