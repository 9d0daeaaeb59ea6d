# frozen_string_literal: true

module Ringspun
  module Jobs
    module Cron
      # Makes the jobs of entries.
      #
      # @api private
      module Making
        module_function

        # @param entry [Entry]
        # @return [Storage::Push, nil] nil: a middleware has stopped it
        # @raise [InvalidJobError]
        # @raise [ConfigError] this program has not got the class, and needs it
        def push(entry)
          found = Classes.named(entry.job_class)
          maker = Classes.maker(found)
          return maker.push(found, entry.arguments, entry.options) if maker
          if entry.wrapped?
            raise ConfigError, "only a program that has #{entry.class_name} can make its jobs: do this in that one's folder"
          end

          push = BoundJob.new(found, **entry.options).push(Jobs.client, entry.arguments)
          push.is_a?(Client::Later) ? push.push : push
        end

        # Enqueues the job of an entry now, by hand. May switch strands.
        #
        # @param storage [Storage]
        # @param cron [Storage::Cron]
        # @return [String, nil] its jid; nil: another job holds its lock, or a middleware has stopped it
        # @raise [ConfigError, InvalidJobError] this program cannot make it
        # @raise [Error] of the storage
        def run(storage, cron)
          made = push(Jobs.config.cron_entries[cron.name] || Entry.load(cron.name, cron.text))
          answer = storage.cron_push(cron.name, nil, made)
          raise ConfigError, "there is no cron entry #{cron.name} any more" if answer == :unknown

          made&.jid if answer == :pushed
        end
      end
    end
  end
end
