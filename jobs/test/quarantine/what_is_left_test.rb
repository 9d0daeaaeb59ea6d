# frozen_string_literal: true

require "jobs_helper"

# What a job of the quarantine leaves in its child.
class QuarantineWhatIsLeftTest < Minitest::Test
  Member = Struct.new(:name)

  # Its child would be one process more for good, and its place taken.
  def test_what_a_job_has_begun_ends_with_it
    reader, writer = IO.pipe
    group = Ringspun::Jobs::Quarantine.new(grace: 60).group([Member.new("a")]) do
      Ringspun.spin do
        Ringspun::Machine.current.sleep
      ensure
        writer.write("ensured")
      end
      Ringspun::Machine.current.yield
      :done
    end
    value = nil
    ending = Ringspun.run { group.run { |_, result| value = result } }
    writer.close
    assert_equal [:done, "exit 0", "ensured"], [value, ending.fate, reader.read]
  ensure
    [reader, writer].each { |io| io&.close }
  end
end
