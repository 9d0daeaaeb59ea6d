# frozen_string_literal: true

# What a storage has, as a random program puts it there, and beside it a model of what another one must have when all is moved.
class RelocationContents
  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage

  QUEUES = ["default", "slow", "x::y", Storage::QUARANTINE].freeze
  ALIVE = "host:1:alive"
  DEAD = "host:2:dead"
  FAR = 100_000
  # From the year in which they are made.
  LOCK_SECONDS = 10_000_000_000

  # Queues and sets, with the entries of each in the order in which they come; unique locks and who has each; jobs that are in
  # flight at a node that lives; queues that are paused.
  attr_reader :places, :locks, :in_flight, :paused

  def initialize(random, storage)
    @random = random
    @storage = storage
    @number = 0
    @places = Hash.new { |all, place| all[place] = [] }
    @locks = {}
    @in_flight = []
    put
  end

  # @return [Hash{String, Symbol => Array}] what a storage has, as {places}
  def self.of(storage)
    queues = storage.stats[:queues].keys.to_h { |queue| [queue, storage.list(queue, 0, 10_000).map { |job| job.entry.b }] }
    sets = Storage::SETS.to_h { |set| [set, storage.scan(set, 0, 10_000).map { |job| [job.at.round(3), job.entry.b] }] }
    queues.merge(sets).reject { |_, all| all.empty? }
  end

  # Where each job is, for where the order is not asked for.
  #
  # @return [Array<Array(String, String)>]
  def self.whereabouts(places)
    places.flat_map { |place, all| all.map { |one| [place.to_s, name_of(Array(one).last)] } }.sort
  end

  def self.name_of(entry) = Jobs::Wire.jid(entry) || entry

  private

  def put
    @storage.extend([ALIVE], 600)
    put_in_flight
    QUEUES.each { |queue| put_into_queue(queue) }
    Storage::SETS.each { |set| put_into_set(set) }
    put_what_is_due
    @paused = QUEUES.first(3).select { @random.rand(4).zero? }.each { |queue| @storage.pause(queue) }
    @places.delete_if { |_, all| all.empty? }
    @places.transform_values! { |all| all.map { |one| one.is_a?(Array) ? [one.first, one.last.b] : one.b } }
    @in_flight.map!(&:b)
  end

  # Before the queues have others.
  def put_in_flight
    @random.rand(4).times do
      entry = job("default")
      @storage.restore("default", [Storage::Stored.new(nil, entry)])
      @in_flight << entry
    end
    @storage.fetch(ALIVE, ["default"], 4)
    @in_flight = in_order("default", @in_flight)
    @storage.extend([DEAD], 600)
    @random.rand(4).times do
      entry = job("slow")
      @storage.restore("slow", [Storage::Stored.new(nil, entry)])
      @places[Storage::QUARANTINE] << entry
    end
    @storage.fetch(DEAD, ["slow"], 4)
    @places[Storage::QUARANTINE] = in_order("slow", @places[Storage::QUARANTINE])
  end

  def put_into_queue(queue)
    entries = Array.new(@random.rand(12)) { @random.rand(8).zero? ? "no job #{@number += 1}\xff".b : job(queue) }
    entries.each do |entry|
      unique = Jobs::Wire.read(entry)&.fetch("unique_token", nil)
      next @storage.restore(queue, [Storage::Stored.new(nil, entry)]) unless unique

      push = Storage::Push.new(queue, entry, Jobs::Wire.jid(entry), nil, nil, unique, LOCK_SECONDS)
      @storage.push([push])
      @locks[unique] = push.jid
    end
    return if entries.empty?

    # What was in flight at a dead node comes behind the others of the quarantine.
    @places[queue] = in_order(queue, entries) + @places[queue]
  end

  def in_order(queue, entries)
    return entries if queue == Storage::QUARANTINE

    entries.sort_by.with_index { |entry, index| [(job = Jobs::Wire.read(entry)) ? Jobs::Wire.priority(job) : 0, index] }
  end

  def put_into_set(set)
    jobs = Array.new(@random.rand(10)) do |index|
      at = set == :dead ? 1000.0 + index : (@storage.time + FAR + index).round(3)
      Storage::Stored.new(nil, job("slow", unique: false), at)
    end
    @storage.restore(set, jobs)
    @places[set] = jobs.map { |one| [one.at, one.entry] }
  end

  # It is moved by way of its queue.
  def put_what_is_due
    jobs = Array.new(@random.rand(4)) do |index|
      Storage::Stored.new(nil, job("due", enqueued_at: 5.0, unique: false), 10.0 + index)
    end
    @storage.restore(:schedule, jobs)
    @places["due"] = in_order("due", jobs.map(&:entry))
  end

  def job(queue, unique: true, **fields)
    @number += 1
    queue = "slow" if queue == Storage::QUARANTINE
    fields[Jobs::Wire::PRIORITY] = @random.rand(-2..2) if @random.rand(4).zero?
    if unique && @random.rand(4).zero?
      kind = %w[success start expiry].sample(random: @random)
      fields.update(unique_token: "t#{@number}", unique_for: LOCK_SECONDS, unique_until: kind)
    end
    Jobs::Wire.dump({ "class" => "Work", "args" => [@number, "é"], "jid" => "j#{@number}", "queue" => queue,
                      "created_at" => 5.5, **fields.transform_keys(&:to_s) })
  end
end
