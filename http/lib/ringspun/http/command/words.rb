# frozen_string_literal: true

require_relative "texts"

module Ringspun
  module HTTP
    class Command
      # What may be said to a server, in one table: the flags of the command line, the words of the configuration file, the
      # options of `rackup -O`, and their help. They are the keywords of {HTTP.run}, and of {Cluster.run}, which gets
      # what that does not know, and a few words that say where things are.
      #
      # @api private
      module Words
        # What is no option of {HTTP.run}.
        NOT_OF_RUN = %i[port access_log_to environment configuration directory preload bind app rackup].freeze
        private_constant :NOT_OF_RUN

        # What may be said:
        #
        # - `name`: the word of the file, and of `rackup -O`
        # - `takes`: what stands for its value in the help; nil: it is a switch; false: only Ruby can say it
        # - `flags`: as OptionParser has them; empty: it has none
        # - `text`: the function of {Texts} that makes a value of what a shell gives
        # - `whose`: :all; :command: rackup and Rails have their own; :file: the file alone says it
        Word = Data.define(:name, :takes, :help, :flags, :text, :whose) do
          # @raise [UsageError]
          def value(text)
            reader = Texts.method(self.text)
            reader.arity == 1 ? reader.call(text) : reader.call(text, name)
          end

          def of_run? = !NOT_OF_RUN.include?(name)
          def rackup? = whose == :all && takes != false
          def flag? = whose != :file && takes != false
          def switch? = takes.nil?
          def stream? = text == :stream
        end

        class << self
          private

          def word(name, takes, *help, short: nil, flag: name.to_s.tr("_", "-"), text: :itself, whose: :all)
            flags = [short, "--#{flag}#{" #{takes}" if takes}"].compact
            [name, Word.new(name:, takes:, help:, flags:, text:, whose:)]
          end
        end

        # By what they are about, in the order of the help.
        TABLE = {
          "where" => [
            word(:listen, "URI", "tcp://HOST:PORT, unix://PATH, ssl://HOST:PORT?cert=FILE&key=FILE or systemd://[NAME];",
                 "may be given several times; tcp://127.0.0.1:9292", short: "-b", flag: "bind"),
            word(:port, "PORT", "tcp://0.0.0.0:PORT, as PORT of the environment", short: "-p"),
            word(:tls, "cert=FILE,key=FILE", "of ssl:// places that do not say them", text: :pairs),
            word(:proxy_protocol, "PEERS", "addresses and networks of proxies that send a PROXY header", text: :list),
            word(:backlog, "N", "connections that the kernel keeps for each place; 1024", text: :number),
            word(:mode, "OCTAL", "permissions of Unix sockets' files; as the umask says", text: :mode)
          ],
          "how" => [
            word(:workers, "N", "processes that serve; 0: this one alone; auto: one for each processor; 0",
                 short: "-w", text: :workers),
            word(:preload, nil, "loads the program once, before there are workers", text: :truth, whose: :command),
            word(:limits, "NAME=N,NAME=N", "bytes and seconds that clients may take, as body_max=10000000,keep_alive=20",
                 text: :numbers),
            word(:request_timeout, "SECONDS", "for all of an answer; none", text: :number),
            word(:max_requests, "N", "that each process answers at once, above them is a 503; none", text: :number),
            word(:max_connections, "N", "of each process, above them they wait in the kernel; 10000", text: :number),
            word(:early_hints, nil, "lets programs send a 103", text: :truth)
          ],
          "what is seen" => [
            word(:access_log, "FORMAT", "common, combined or json; none", text: :path),
            word(:access_log_to, "FILE", "by default - , the standard output"),
            word(:metrics, "PLACE", "a path such as /metrics, or a place of their own as tcp://127.0.0.1:9394", text: :path),
            word(:tracing, "YES", "true or false: spans of OpenTelemetry; where its SDK is loaded", text: :truth),
            word(:errors, "FILE", "gets what goes wrong in the program; the standard error", text: :stream),
            word(:logger, "FILE", "gets a line for what becomes of workers; none; the standard error", text: :stream)
          ],
          "starts and ends" => [
            word(:drain, "SECONDS", "that requests have to end; 30", text: :number),
            word(:grace, "SECONDS", "from then until a worker is killed; 5", text: :number),
            word(:boot, "SECONDS", "in which a worker must be ready; 60", text: :number),
            word(:heartbeat, "SECONDS", "without a turn of its loop after which a worker hangs; 60", text: :number),
            word(:settle, "SECONDS", "of life after which a worker is replaced at once; 10", text: :number),
            word(:backoff, "FIRST..LONGEST", "seconds of the pauses before a worker is replaced; 0.1..30", text: :pauses)
          ],
          "others" => [
            word(:environment, "NAME", "RACK_ENV; development", short: "-e", whose: :command),
            word(:configuration, "FILE", "the configuration, in Ruby; by default, where there is one,",
                 "config/ringspun_http.rb; none: -", short: "-C", flag: "config"),
            word(:directory, "FOLDER", "goes there first", flag: "dir", whose: :command)
          ],
          "Ruby alone" => [
            word(:bind, "URI", "as listen", whose: :file), word(:app, "FILE", "the program, or its file", whose: :file),
            word(:rackup, "FILE", "as app", whose: :file), word(:before_fork, false, "called in the parent, with the index"),
            word(:after_fork, false, "called in a worker, with it"), word(:on_worker_end, false, "called in the parent"),
            word(:on_reload, false, "called in the parent after a HUP")
          ]
        }.transform_values(&:to_h).freeze

        # By their names.
        ALL = TABLE.values.reduce(:merge).freeze
        # What a file says in another way: there it is `access_log :common, to: FILE`, and it does not name itself.
        NOT_OF_FILES = %i[access_log_to configuration].freeze
        private_constant :NOT_OF_FILES

        # What people write who come from Puma, and what does it here.
        FROM_PUMA = {
          threads: "there are none: each connection has a strand of its own; max_connections bounds how many there are",
          preload_app!: "say preload true", on_worker_boot: "say after_fork { |worker| ... }",
          before_worker_boot: "say after_fork { |worker| ... }",
          on_worker_shutdown: "say after_fork { at_exit { ... } }", before_worker_shutdown: "say after_fork { at_exit { ... } }",
          worker_timeout: "say heartbeat SECONDS",
          worker_boot_timeout: "say boot SECONDS", worker_shutdown_timeout: "say drain SECONDS",
          force_shutdown_after: "say drain SECONDS", persistent_timeout: "say limits keep_alive: SECONDS",
          first_data_timeout: "say limits first_byte: SECONDS, head: SECONDS",
          stdout_redirect: "say access_log :combined, to: \"log/access.log\"", log_requests: "say access_log :combined",
          ssl_bind: "say listen \"ssl://0.0.0.0:443?cert=FILE&key=FILE\"",
          set_remote_address: "say proxy_protocol \"10.0.0.0/8\"",
          pidfile: "a service manager knows the process; rackup and Rails write one, -P",
          state_path: "there is none; metrics has the numbers", activate_control_app: "there is none; metrics has the numbers",
          plugin: "there are none", queue_requests: "a process that is full, max_connections, takes no connection",
          verbose: "say access_log", silent: "say logger nil in Ruby, and none for nil in a shell"
        }.freeze

        class << self
          # @return [Array<Symbol>] options of {HTTP.run}
          def of_run = ALL.keys - NOT_OF_RUN

          # @return [Array<Symbol>] those of them that {Cluster.run} gets
          def of_cluster = of_run & Cluster.method(:run).parameters.map(&:last)

          # @return [Array<Symbol>] words of the file
          def of_files = (ALL.keys - NOT_OF_FILES).sort

          # @return [Array<Word>] options of `rackup -O`
          def of_rackup = ALL.values.select(&:rackup?)

          # @param name [Symbol, String] no word
          # @param words [Array<Symbol>] those that there are
          # @return [String] what may have been meant, or all
          def instead_of(name, words)
            plain = name.to_s.downcase.tr("-", "_")
            hint = FROM_PUMA[plain.to_sym]
            return ": #{hint}" if hint

            Suggestion.for(plain, words.sort)
          end
        end
      end
      private_constant :Words
    end
  end
end
