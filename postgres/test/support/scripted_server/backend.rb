# frozen_string_literal: true

class ScriptedServer
  # One connection.
  class Backend
    # What a statement fails with.
    Failure = Class.new(StandardError) do
      attr_reader :state, :routine

      def initialize(state, message, routine = nil)
        @state = state
        @routine = routine
        super(message)
      end
    end

    # After this nothing is served.
    End = Class.new(StandardError)

    # A statement that has been executed as far as somebody wanted its rows.
    Portal = Struct.new(:sql, :params, :rows, :tag, :failure)
    private_constant :End, :Portal

    TEXT = 25
    NULL = 0xffffffff
    ENDS = %w[die cut].freeze
    TAGS = { "begin" => "BEGIN", "commit" => "COMMIT", "rollback" => "ROLLBACK", "savepoint" => "SAVEPOINT",
             "release" => "RELEASE", "insert" => "INSERT 0 1", "discard" => "DISCARD ALL",
             "alter" => "SET" }.freeze
    private_constant :TEXT, :NULL, :ENDS, :TAGS

    # @return [Integer] by which a client cancels
    attr_reader :process, :key

    # @return [String] of the transaction: I, T or E
    attr_reader :status

    # @param settings [Hash{String => String}] with which the client has begun
    def initialize(server, stream, number, settings)
      @server = server
      @stream = stream
      @settings = settings
      @process = number
      @key = server.random.rand(1 << 31)
      @status = "I"
      @busy = false
      @statements = {}
      @written = [[]] # what the transaction has inserted, and what each savepoint in it
      @names = []
      @interrupts = Ringspun::Channel.new(1)
      @out = +"".b
    end

    def interrupt
      @passed_over = @server.deaf && !@passed_over
      @interrupts.try_push(true) unless @passed_over
    end

    # @return [Boolean] whether it works on a statement
    def busy? = @busy

    def run
      greet
      nil while serve
    rescue End, Ringspun::Error, SystemCallError
      nil # the client has gone, or is to go
    end

    private

    def greet
      say("R", [0].pack("N"))
      say("S", "server_version\0scripted\0")
      say("K", [@process, @key].pack("NN"))
      ready
    end

    # @return [Boolean] false: the client has ended it
    def serve
      header = @stream.read(5) or return false
      body = @stream.read(header.unpack1("xN") - 4)
      return false if header.start_with?("X")

      skipped = @failed && !header.start_with?("S")
      take(header[0], body) unless skipped
      true
    end

    def take(type, body)
      case type
      when "P" then parse(*body.split("\0", 3))
      when "D" then describe(body[1..].chomp("\0"))
      when "B" then bind(body)
      when "E" then guard { execute(body.unpack1("xN")) }
      when "C" then close(body[1..].chomp("\0"))
      when "Q" then query(body.chomp("\0"))
      when "H" then flush
      when "S" then sync
      else raise "the client has sent #{type.inspect}"
      end
    end

    # --- messages ---

    def parse(name, sql, _types)
      return fail("42P05", "#{name} exists") if !name.empty? && @statements.key?(name)

      @statements[name] = sql
      say("1")
    end

    def describe(name)
      sql = @statements[name] or return fail("26000", "there is no #{name}")
      say("t", [0].pack("n"))
      columns = columns_of(sql)
      return say("n") if columns.empty?

      fields = columns.map { |column| [column, 0, 0, TEXT, -1, -1, 0].pack("Z*NnNs>l>n") }
      say("T", [columns.size].pack("n") << fields.join)
    end

    def bind(body)
      _, name, rest = body.split("\0", 3)
      return fail("26000", "there is no #{name}") unless @statements.key?(name)

      @portal = Portal.new(@statements[name], params_of(rest))
      say("2")
    end

    def params_of(bytes)
      formats = bytes.unpack1("n")
      at = 4 + (2 * formats)
      Array.new(bytes.unpack1("n", offset: at - 2)) do
        len = bytes.unpack1("N", offset: at)
        next (at += 4) && nil if len == NULL

        bytes.byteslice(at + 4, len).tap { at += 4 + len }
      end
    end

    def close(name)
      @statements.delete(name)
      say("3")
    end

    # The client sends but the empty one.
    def query(sql)
      raise "the client has sent #{sql.inspect} as a simple query" unless sql.empty?

      guard do
        check_interrupt
        say("I")
      end
      sync
    end

    def sync
      @failed = false
      @portal = nil
      end_transaction(true) if @status == "I"
      ready
    end

    def execute(limit)
      @portal.rows ||= begin
        check_interrupt
        perform(@portal)
      end
      rows = limit.zero? ? @portal.rows : @portal.rows.shift(limit)
      rows.each { |row| say("D", [row.size, *row.flat_map { |value| [value.bytesize, value] }].pack("n#{"Na*" * row.size}")) }
      # https://www.postgresql.org/docs/17/protocol-flow.html: also where the last row was the last of all
      return say("s") if limit.positive? && rows.size == limit

      give_up_portal if @portal.failure
      say("C", "#{@portal.tag}\0")
    end

    def give_up_portal
      ENDS.include?(@portal.failure) ? leave(@portal.failure == "die") : raise(@portal.failure)
    end

    def guard
      yield
    rescue Failure => error
      fail(error.state, error.message, routine: error.routine)
    end

    # A server sends an error at once: whoever has asked for a Flush alone waits for it.
    def fail(state, message, severity = "ERROR", routine: nil)
      say("E", "S#{severity}\0V#{severity}\0C#{state}\0M#{message}\0#{"R#{routine}\0" if routine}\0")
      flush
      @failed = true
      @status == "I" ? end_transaction(false) : @status = "E"
    end

    def ready
      say("Z", @status)
      flush
    end

    def say(type, body = "") = @out << type << [body.bytesize + 4].pack("N") << body

    # In pieces, now and then.
    def flush
      bytes = @out
      @out = +"".b
      if @server.random.rand(4).zero? && bytes.bytesize > 1
        @stream.write(bytes.slice!(0, 1 + @server.random.rand(bytes.bytesize - 1)))
        @server.dawdle
      end
      @stream.write(bytes)
    end

    # --- commands ---

    # A plain SELECT, or not.
    def command_of(sql) = sql.delete_prefix("select ")[/\w+/]

    def columns_of(sql)
      case command_of(sql)
      when "echo", "work", "await" then %w[nonce]
      when "rows" then %w[nonce number]
      when "show" then %w[lock_timeout]
      else []
      end
    end

    # @return [Array<Array<String>>] rows
    def perform(portal)
      command = command_of(portal.sql).downcase
      raise Failure.new("25P02", "the transaction has failed") if @status == "E" && !%w[commit rollback].include?(command)

      portal.tag = TAGS.fetch(command) { "SELECT" }
      nonce, argument, state = portal.params
      portal.failure = ENDS.include?(state) ? state : Failure.new(state, nonce) if state
      case command
      when "echo", "work" then work(argument) && [[nonce]]
      when "await" then await_lock(argument.to_f) && [[nonce]]
      when "rows" then Array.new(argument.to_i) { |number| [nonce, number.to_s] }
      when "insert" then @written.last << nonce and []
      when "fail" then raise Failure.new(argument, nonce)
      when "die", "cut" then leave(command == "die")
      when "mute" then fall_silent
      when "open" then @status = "T" and []
      when "alter" then []
      when "show" then [[@settings.key?("lock_timeout") ? "#{@settings["lock_timeout"]}ms" : "0"]]
      else transact(command, portal) && []
      end
    end

    def work(seconds)
      @busy = true
      seconds ||= @server.random.rand * 0.002
      raise Failure.new("57014", "canceled") if @interrupts.pop(timeout: seconds.to_f)

      true
    ensure
      @busy = false
    end

    def await_lock(seconds)
      limit = @settings["lock_timeout"].to_f / 1000
      return work(seconds) if limit.zero? || limit >= seconds

      work(limit)
      raise Failure.new("55P03", "canceling statement due to lock timeout", "ProcessInterrupts")
    end

    def check_interrupt
      raise Failure.new("57014", "canceled") if @interrupts.try_pop
    end

    def leave(telling)
      fail("57P01", "terminating connection due to administrator command", "FATAL") if telling

      raise End
    end

    # As where a router has forgotten the connection.
    def fall_silent
      nil while @stream.read_partial(1000)
      raise End
    end

    # --- transactions ---

    def transact(command, portal)
      case portal.sql
      when /\ABEGIN/ then @status = "T"
      when "COMMIT" then commit(portal)
      when "ROLLBACK" then end_transaction(false)
      when /\ASAVEPOINT (\w+)/ then savepoint($1)
      when /\ARELEASE (\w+)/ then release($1)
      when /\AROLLBACK TO (\w+)/ then roll_back_to($1)
      when "DISCARD ALL" then @statements.clear
      else raise Failure.new("42601", "what is #{command}?")
      end
    end

    def commit(portal)
      portal.tag = "ROLLBACK" if @status == "E"
      end_transaction(@status == "T")
    end

    def end_transaction(well)
      @server.committed.concat(@written.flatten) if well
      @written = [[]]
      @names.clear
      @status = "I"
    end

    def savepoint(name)
      @names << name
      @written << []
    end

    def level(name) = @names.rindex(name) || raise(Failure.new("3B001", "there is no savepoint #{name}"))

    def release(name)
      at = level(name)
      inner = @written.slice!((at + 1)..).flatten
      @names.slice!(at..)
      @written.last.concat(inner)
    end

    def roll_back_to(name)
      at = level(name)
      @written.slice!((at + 1)..)
      @names.slice!((at + 1)..)
      @written << []
      @status = "T"
    end
  end
end
