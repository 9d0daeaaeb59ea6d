# frozen_string_literal: true

# What the jobs, their producers and the faults have written down, and what follows from it.
class Ledger
  # A run of a job, in the first of these processes, whose parent is the second. `ended` is nil when it did not come to its end.
  Run = Struct.new(:pids, :began, :ended)

  # From `began` to `ended` the processes in `pids` (nil: all) and their children may have lost what they were doing.
  Fault = Struct.new(:what, :pids, :began, :ended)

  attr_reader :runs, :outcomes, :kinds, :faults

  def initialize(path)
    @path = path
    @faults = []
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def size = File.exist?(@path) ? File.size(@path) : 0

  # Whether a poison job has run in that process.
  def poison_in?(pid) = File.foreach(@path).grep(/ begin poison/).any? { |line| line.split[1] == pid.to_s }

  def fault(what, pids: nil, began: now, ended: now)
    @faults << Fault.new(what, pids, began, ended)
  end

  # A piece of a line that nobody has finished cannot be: each is written by one call.
  def read
    @runs = Hash.new { |all, id| all[id] = [] }
    @outcomes = Hash.new { |all, outcome| all[outcome] = [] }
    @kinds = {}
    @jids = {}
    @cancelled = Set.new
    File.foreach(@path, chomp: true) do |line|
      time, pid, parent, what, *words = line.split
      note(Float(time), [Integer(pid), Integer(parent)], what, words)
    end
    self
  end

  def done?(id) = @runs.key?(id) && @runs[id].any?(&:ended)

  # Whether somebody has cancelled that job, and it has not only ended with its worker. One that waits for its child in the
  # quarantine hears nothing of it; then the worker says so.
  def cancelled?(id, logs) = @cancelled.include?(id) || logs.match?(/ jid=#{@jids[id]} .* cancelled$/)

  # The jids of the jobs of that kind that have begun until now.
  def begun(kind)
    lines = File.foreach(@path, chomp: true).map(&:split)
    lines.filter_map { |line| line[5] if line[3] == "begin" && line[6] == kind }.uniq
  end

  # Jobs that came to their end more than once.
  def doubled = @runs.select { |_, runs| runs.count(&:ended) > 1 }.keys

  # Those of them of which no fault tells why: one that touches the process of a run, from its beginning to that of the next.
  def unexplained
    doubled.reject do |id|
      @runs[id].sort_by(&:began).each_cons(2).all? { |run, again| explained?(run, again) }
    end
  end

  # Whether a worker has said that it took the job over. On a machine that is slow enough a lease also runs out by itself.
  def taken_over?(id, logs) = logs.match?(/ jid=#{@jids[id]} .*taken over from a dead process/)

  # Whether it may have been cut short as often as it is allowed isolated: also at its end, before anybody was told, and one time
  # before it has said that it begins.
  def killed_often?(id) = @runs[id].size + 1 >= Ringspun::Jobs.config.deaths

  def describe(id) = "#{id} (#{@kinds[id]}, #{@jids[id]}): #{@runs[id].map(&:to_a)}"

  private

  def note(time, pids, what, words)
    case what
    when "begin" then began(time, pids, *words)
    when "cancelled" then @cancelled << words.first
    when "end" then @runs[words.first].reverse_each.find { |run| run.pids.first == pids.first }.ended = time
    else
      kind, *ids = words
      ids.each { |id| @kinds[id] = kind }
      @outcomes[what.to_sym].concat(ids)
    end
  end

  # A poison job is what goes wrong for all that run beside it.
  def began(time, pids, id, jid, _kind)
    @runs[id] << Run.new(pids, time)
    @jids[id] = jid
    fault("poison", pids: [pids.first], began: time - 1, ended: time + 1) if id.start_with?("poison")
  end

  # That a job runs again because it has said so is no doubling.
  def explained?(run, again)
    return true unless run.ended

    @faults.any? do |fault|
      (fault.pids.nil? || fault.pids.intersect?(run.pids)) && fault.began <= again.began && fault.ended >= run.began
    end
  end
end
