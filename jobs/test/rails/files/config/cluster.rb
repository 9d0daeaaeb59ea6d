# frozen_string_literal: true

# Of puma: a master that has used the storage and the database before it forks.
port 0, "127.0.0.1"
workers 2
threads 8, 8
preload_app!
before_fork { TellJob.perform_later("master #{Session.id}") }
