# frozen_string_literal: true

# Processes that share a file of jobs, and do what they are told, one thing after the other.
module Beside
  # Calls a block before a statement, by its number from now on.
  module Statements
    class << self
      attr_accessor :left, :block

      def count
        return unless left

        self.left -= 1
        return unless left.negative?

        self.left = nil
        block.call
      end
    end

    def guard(...)
      Statements.count
      super
    end
  end

  # One of them.
  class Process
    NODE = "host:%s:aa"

    # @param faults [Proc, nil] is called in it with what {#call} is given
    def initialize(path, faults: nil)
      theirs, @commands = IO.pipe
      @answers, answers = IO.pipe
      @pid = fork do
        [@commands, @answers].each(&:close)
        serve(path, faults, theirs, answers)
        exit!(0)
      rescue Exception => error
        warn error.full_message
        exit!(1)
      end
      [theirs, answers].each(&:close)
    end

    def push(*jids) = call(:push, jids)

    # @param fault [Array(Integer, Object), nil] before which statement, and what happens
    # @return [Object] the value, or the name of an error
    def call(what, jids = [], fault: nil)
      Marshal.dump([what, jids, fault], @commands)
      value, @message = Marshal.load(@answers)
      value
    end

    # @return [String, nil] what the last error said
    attr_reader :message

    # Lets it end in good order.
    #
    # @return [Process::Status]
    def stop
      Marshal.dump(nil, @commands) # others may have inherited the pipe
      @commands.close
      ::Process.wait2(@pid).last
    ensure
      @answers.close
    end

    private

    def serve(path, faults, commands, answers)
      sqlite = Ringspun::Jobs::Storage::Sqlite
      sqlite.const_get(:Connection).prepend(Statements)
      @storage = sqlite.new(path, durable: :normal)
      @node = format(NODE, ::Process.pid)
      while (what, jids, fault = Marshal.load(commands))
        Statements.block = -> { faults.call(fault.last) } if fault
        Statements.left = fault&.first
        Marshal.dump(outcome { send(:"do_#{what}", jids) }, answers)
      end
      outcome { @storage.close }
    end

    def outcome
      [yield, nil]
    rescue Ringspun::Jobs::Error => error
      [error.class.name, error.message]
    end

    def do_push(jids)
      @storage.push(jids.map { |jid| Ringspun::Jobs::Storage::Push.new(queue: "default", entry: entry(jid), jid: jid) })
    end

    def do_list(_) = @storage.list("default", 0, 999).map { |one| jid_of(one) }

    # @return [Array<String>] which jobs are done then
    def do_work(_)
      fetched = @storage.in_flight(@node) + @storage.fetch(@node, ["default"], 2)
      acks = fetched.map { |one| Ringspun::Jobs::Storage::Ack.new(queue: one.queue, token: one.token, jid: jid_of(one)) }
      settled = @storage.ack(@node, acks)
      acks.zip(settled).filter_map { |ack, done| ack.jid if done }
    end

    def do_close(_) = @storage.close

    def entry(jid) = JSON.generate({ "class" => "Work", "args" => [], "jid" => jid, "queue" => "default" })

    def jid_of(one) = JSON.parse(one.entry)["jid"]
  end
end
