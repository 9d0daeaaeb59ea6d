# frozen_string_literal: true

# What a process and its children have used of the processors so far, by /proc. See proc(5) and, for schedstat,
# https://docs.kernel.org/scheduler/sched-stats.html
class ProcessTimes
  # cpu: seconds of the process and all its children, those that have ended included. active: seconds for which its first thread
  # and its children used a processor or waited for one. waited: seconds for which any of its threads waited for one.
  Sample = Data.define(:cpu, :active, :waited)

  TICKS_A_SECOND = 100.0 # USER_HZ, which is 100 wherever Ruby runs on Linux
  NS_A_SECOND = 1e9

  # @param pid [Integer]
  # @param others [Array<Integer>] processes that count as its children, and theirs
  def initialize(pid, others = [])
    @pid = pid
    @others = others
  end

  # @return [Sample, nil] nil when the process is gone
  def sample
    own, theirs = used(@pid)
    children = descendants
    theirs += children.sum { |pid| used(pid).to_a.sum }
    wanted = children.sum { |pid| waited_by(pid) }
    Sample.new(cpu: own + theirs, active: active(@pid) + theirs + wanted, waited: waited_by(@pid))
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  # @return [Array<Integer>] the children, and theirs. Who has lost its parent, as a server that detaches itself, is none
  def descendants = [*children(@pid), *@others.flat_map { |pid| [pid, *children(pid)] }]

  # @return [Float] seconds for which the process and its children that live have waited for a processor, over all threads
  def waited = [@pid, *descendants].sum { |pid| waited_by(pid) }

  # @return [Array<Integer>] the process groups of the process and its children
  def groups = [@pid, *descendants].filter_map { |pid| stat(pid)&.at(2)&.to_i }.uniq

  private

  def children(pid)
    Dir.glob("/proc/#{pid}/task/*/children").flat_map { |path| read(path).split.map(&:to_i) }
       .flat_map { |child| [child, *children(child)] }
  end

  def read(path)
    File.read(path)
  rescue SystemCallError # it has ended
    ""
  end

  # The fields after the name of the program, which may have blanks and parentheses of its own: state, parent, group, ...
  def stat(pid)
    text = read("/proc/#{pid}/stat")
    text[(text.rindex(")") + 2)..].split unless text.empty?
  end

  # The seconds of the process itself and of its children that have ended.
  def used(pid)
    fields = stat(pid)
    raise Errno::ESRCH if fields.nil? && pid == @pid

    fields&.values_at(11, 12, 13, 14)&.map { |ticks| ticks.to_i / TICKS_A_SECOND }&.each_slice(2)&.map(&:sum)
  end

  def active(pid) = read("/proc/#{pid}/task/#{pid}/schedstat").split.first(2).sum(&:to_i) / NS_A_SECOND

  def waited_by(pid) = Dir.glob("/proc/#{pid}/task/*/schedstat").sum { |path| read(path).split[1].to_i } / NS_A_SECOND
end
