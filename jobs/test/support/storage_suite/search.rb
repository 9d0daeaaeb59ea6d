# frozen_string_literal: true

module StorageSuite
  # How jobs are found, wherever they are.
  module Search
    # Jobs a to f, each in another place.
    def everywhere
      push("a", at: storage.time + 1000)
      push("b", queue: "x::y")
      push("c", "d", "e", "f")
      c, d, e, f = fetch
      storage.fail(NODE, [failed(c, to: :retry, delay: 1000), failed(d, to: :dead), failed(f, to: :queue)])
      e
    end

    # All pages of a search, and how many entries they have looked at.
    def pages(**options)
      all = []
      looked = 0
      cursor = nil
      loop do
        page = storage.search(cursor: cursor, **options)
        yield page if block_given?
        all.concat(page.found)
        looked += page.looked
        cursor = page.cursor or return [all, looked]
      end
    end

    def found(**) = jids(pages(**).first)

    def test_finds_a_job_wherever_it_is
      e = everywhere
      found = ("a".."f").to_h { |jid| [jid, storage.find(jid)] }
      assert_equal [[:schedule, nil, nil], [:queue, "x::y", nil], [:retry, nil, nil], [:dead, nil, nil],
                    [:in_flight, "default", NODE], [:queue, "default", nil]],
                   (found.each_value.map { |one| [one.place, one.queue, one.node] })
      assert_equal([true, false, true, true, false, false], found.each_value.map { |one| one.at.is_a?(Float) })
      assert_in_delta storage.time + 1000, found["a"].at, 60
      assert_equal [e.token, e.entry], [found["e"].token, found["e"].entry]
      assert_nil storage.find("nowhere")
      assert_nil storage.find(nil), "no condition would be met by any job"
      assert_nil storage.find(5)
      tokens = found.transform_values(&:token)
      assert_equal [[true]] * 3, [storage.remove(:schedule, [tokens["a"]]), storage.remove("x::y", [tokens["b"]]),
                                  storage.retry_now(:dead, [tokens["d"]])]
      assert_equal [nil, :queue], [storage.find("a"), storage.find("d").place]
    end

    def test_searches_in_places
      everywhere
      assert_equal [%w[a b c d e f], 6], [jids(pages.first).sort, pages.last]
      places = { ["default"] => %w[f], ["x::y", :dead] => %w[b d], [:in_flight] => %w[e], [:queue] => %w[b f],
                 [:schedule, :retry] => %w[a c], [] => [], ["nowhere"] => [], [:queue, "default"] => %w[b f] }
      places.each { |some, expected| assert_equal expected, found(places: some).sort, some.inspect }
      assert_raises(ArgumentError) { storage.search(places: [:other]) }
      assert_equal [%w[d], %w[f]], [found(places: :dead), found(places: "default")]
      assert_match(/text: must be a String/, assert_raises(Ringspun::UsageError) { storage.search(text: /a/) }.message)
    end

    def test_searches_for_what_all_conditions_meet
      jobs = { "a" => { "class" => "Mail", "args" => ["Ada <ada@example.org>", { "kind" => 12 }], "tags" => %w[red blue] },
               "b" => { "class" => "Wrapper", "wrapped" => "Mail", "args" => [["Größe \"7\""]], "tags" => %w[red] },
               "c" => { "class" => "Mailer", "args" => [1.5, true, nil], "tags" => "redder" } }
      entries = jobs.map { |jid, job| JSON.generate({ "jid" => jid, "queue" => "default", **job }) }
      storage.push([*entries, "no job: red Mail"].map { |entry| Storage::Push.new(queue: "default", entry: entry) })
      { { job_class: "Mail" } => %w[a b], { tag: "red" } => %w[a b], { tag: "red", job_class: "Mail", jid: "b" } => %w[b],
        { tag: :blue } => %w[a], { jid: "c" } => %w[c], { text: "<ada@" } => %w[a], { text: "Größe" } => %w[b],
        { text: "\"7\"" } => %w[b], { text: "kind" } => %w[a], { text: "12" } => %w[a], { text: "1.5" } => %w[c],
        { text: "true" } => %w[c], { text: "red" } => [], { text: "Mail" } => [], { jid: "a", text: "7" } => [],
        { job_class: String } => [] }.each do |conditions, expected|
        assert_equal expected, found(**conditions).sort, conditions.inspect
      end
      assert_equal 4, pages.first.size
    end

    # In a queue it counts where it waits, in a set what it names.
    def test_searches_in_a_queue
      everywhere
      storage.push([Storage::Push.new(queue: "x::y", entry: "no job")])
      storage.push([Storage::Push.new(queue: "x::y", entry: entry("g", queue: "default"))])
      bare = JSON.generate("class" => "Work", "args" => [], "jid" => "h")
      storage.restore(:dead, [Storage::Stored.new(nil, bare, 5), Storage::Stored.new(nil, entry("i", queue: "x::y"), 6)])
      assert_equal %w[a c d e f h], found(queue: "default").sort
      all = pages(queue: "x::y").first
      assert_equal [["no job", entry("b", queue: "x::y"), entry("g"), entry("i", queue: "x::y")].sort, []],
                   [entries(all).sort, found(queue: "nowhere")]
      assert_equal %w[d h], found(queue: "default", places: [:dead]).sort
      assert_equal [%w[b i], %w[b g i]], [found(queue: "x::y", jid: "b") | found(queue: "x::y", jid: "i"),
                                          found(queue: "x::y", job_class: "Work").sort]
    end

    def test_searches_in_a_queue_whose_name_is_no_text
      storage.push(%w[a b].map { |jid| Storage::Push.new(queue: "\xff", entry: entry(jid), jid: jid) })
      pages = [storage.search(places: ["\xff"], count: 1)]
      pages << storage.search(places: ["\xff"], count: 1, cursor: pages.last.cursor) while pages.last.cursor
      assert_equal %w[a b], jids(pages.flat_map(&:found)).sort
      assert_equal ["\xff"] * 2, %w[a b].map { |jid| storage.find(jid).queue.dup.force_encoding(Encoding::UTF_8) }
    end

    def test_searches_for_a_number
      everywhere
      storage.push([Storage::Push.new(queue: "default", entry: entry("n", args: [4711]), jid: "n")])
      assert_equal %w[n], found(text: 4711)
    end

    def test_searches_for_what_is_no_text
      storage.push([Storage::Push.new(queue: "default", entry: entry("x").sub('"x"', %("a\xFFb")), jid: "a")])
      everywhere
      assert_equal ["a\xFFb"], found(jid: "a\xFFb")
      assert_empty found(text: "\xFF")
    end

    def test_a_page_looks_at_so_many_and_the_next_goes_on
      names = Array.new(25) { |number| "q#{number}" }
      push(*names)
      push(*("a".."e"), queue: "other", at: 5)
      first = storage.search(jid: "nobody", places: ["default"], count: 10)
      assert_equal [[], 10, String], [first.found, first.looked, first.cursor.class]
      sizes = []
      assert_equal [["q3"], 25], (pages(jid: "q3", places: ["default"], count: 10) { |page| sizes << page.looked }
                                   .then { |all, looked| [jids(all), looked] })
      assert_equal [10, 10, 5], sizes
      assert_equal (names + %w[a b c d e]).sort, found(count: 7).sort
      ["", "nonsense", ["5"].pack("m0"), 5].each { |cursor| assert_raises(ArgumentError) { storage.search(cursor: cursor) } }
    end

    def test_what_was_there_all_the_time_is_found
      stay = Array.new(30) { |number| "stay#{number}" }
      push(*Array.new(30) { |number| "go#{number}" })
      push(*stay)
      push(*stay.map { |jid| "later#{jid}" }, at: storage.time + 1000)
      new = 0
      found, = pages(count: 7) do
        push("new#{new += 1}", "and#{new}")
        push("due#{new}", at: storage.time + 1)
        storage.ack(NODE, fetch(3).map { |one| done(one) }) if new <= 10
      end
      names = jids(found)
      assert_empty (stay + stay.map { |jid| "later#{jid}" }) - names
    end

    def test_what_is_in_flight_is_found_although_others_end
      push(*Array.new(40) { |number| "j#{number}" })
      running = fetch
      found, = pages(count: 5, places: [:in_flight]) { storage.ack(NODE, running.shift(3).map { |one| done(one) }) }
      assert_empty jids(running) - jids(found)
    end
  end
end
