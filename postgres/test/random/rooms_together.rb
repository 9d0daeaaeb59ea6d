# frozen_string_literal: true

require "logger"
require "net/http"
require "stringio"
require "timeout"
require "ringspun/http"
require "ringspun/jobs"
require "ringspun/postgres"

# Small programs whose strands use all rooms at once, on one machine: statements and transactions, jobs that they enqueue and that
# a worker runs beside them, answers of a web server that ask the database, stock locks, processes and threads. Limits, scopes and
# terminations cut them off wherever they are. What comes of it is compared with what each strand has heard.
module RoomsTogether
end

require_relative "rooms_together/program"
require_relative "rooms_together/ledger"
require_relative "rooms_together/actor"
require_relative "rooms_together/site"
