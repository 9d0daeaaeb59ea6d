# frozen_string_literal: true

require_relative "execution"
require_relative "notice"

module Ringspun
  module Postgres
    # A call of a client that somebody observes, while it is under way: what is known of its times and notices.
    #
    # @api private
    class ObservedCall
      # @return [Array<Notice>] in the order in which they came
      attr_reader :notices

      def initialize(kind, sqls, database)
        @kind = kind
        @sqls = sqls
        @database = database
        @began = Postgres.now
        @notices = []
      end

      # --- of a stream ---

      # It is sent now.
      def sent(lane)
        @lane = own(lane)
        @queue = Postgres.now - @began
        @waited = @decoded = 0.0
        @rows = 0
      end

      # Runs the block, which waits for rows.
      def waits
        began = Postgres.now
        rows = yield
        take(Lane.take_seen(rows)) if rows
        rows
      ensure
        @waited += Postgres.now - began
      end

      # Runs the block, which decodes rows, and gives each to what it is given.
      #
      # @param block [Proc] whose time does not count
      # @yieldparam each [Proc] to call with each row
      def decodes(block)
        began = clock
        inside = 0.0
        yield(lambda do |row|
          entered = clock
          @rows += 1
          block.call(row)
        ensure
          inside += clock - entered
        end)
      ensure
        @decoded += clock - began - inside
      end

      # --- of a COPY ---

      # @param rows [Integer] that came out
      def copied(result, rows)
        take(Lane.take_seen(result))
        @rows = rows
        @affected = result.affected
      end

      # --- of all ---

      # What the extension has noted.
      #
      # @param seen [Array(Lane, Float, Float, Array<String>, Array<String>), nil]
      def take(seen, sql = @sqls.first)
        return unless seen

        @lane, sent_at, answered_at, bodies, others = seen
        @sent_at ||= sent_at
        @answered_at = answered_at
        others&.each { |body| @notices << Notice.new(body, nil) }
        bodies.each { |body| @notices << Notice.new(body, sql) }
      end

      # Those for which there was no answer to come with.
      def take_notices(lane)
        @lane ||= own(lane)
        own(lane).take_notices.each { |body| @notices << Notice.new(body, @sqls.first) }
      end

      # @param value [Result, Array<Result>, nil] nil: of a stream
      # @return [Array<Execution>]
      def returned(value)
        ended = Postgres.now
        return [execution(@sqls.first, ended, @rows || 0, @rows || 0)] if @kind == :stream
        return [script(value, ended)] if @kind == :script
        return [execution(@sqls.first, ended, @rows || 0, @affected || 0)] if @kind == :copy

        @sqls.zip(value.is_a?(Array) ? value : [value]).map do |sql, result|
          @sent_at = @answered_at = nil
          take(Lane.take_seen(result), sql)
          execution(sql, ended, result.size, result.affected)
        end
      end

      # @return [Array<Execution>] one: that of the statement that has failed
      def failed(error)
        sql = (error.sql if @kind == :batch && error.is_a?(ServerError)) || @sqls.first
        take(Lane.take_seen(error), sql)
        [execution(sql, Postgres.now, nil, nil, error)]
      end

      private

      def script(results, ended) = execution(@sqls.first, ended, results.sum(&:size), results.sum(&:affected))

      def execution(sql, ended, rows, affected, error = nil)
        session = @lane&.session
        Execution.new(sql:, kind: @kind, duration: ended - @began, **times(ended), rows:, affected:, connection: session&.process,
                      host: session&.host&.to_s, database: @database, error:)
      end

      def times(ended)
        return { queue: @queue, wire: @waited, decoding: @decoded } if @kind == :stream

        { queue: @sent_at && [@sent_at - @began, 0.0].max, wire: @sent_at && @answered_at && (@answered_at - @sent_at),
          decoding: @answered_at && [ended - @answered_at, 0.0].max }
      end

      # That of the courier's is in another thread. What is asked of it never changes, or is for any thread.
      def own(lane) = lane.respond_to?(:lane) ? lane.lane : lane

      # The machine's stands while a strand is at work.
      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_constant :ObservedCall
  end
end
