# frozen_string_literal: true

require "minitest/autorun"
require_relative "houses"

# What follows other people's versions is behind one file that programs require, so that it can be removed whole: nothing else of
# its gem knows it. Needs neither the extensions nor test_helper.
class DoorsTest < Minitest::Test
  DOORS = [["runtime/lib", "concurrently"], ["runtime/lib", "ringspun/async"], ["jobs/lib", "ringspun/jobs/sidekiq"]].freeze

  DOORS.each do |folder, door|
    define_method("test_nothing_else_of_#{folder}_knows_what_is_behind_#{door}") do
      assert_includes House.at(folder).circles.files, door
      refute_empty House.at(folder).circles.files.grep(/\A#{door}\//)
      assert_empty House.at(folder).past(door)
    end
  end

  DOOR = { "j/guest.rb" => "require 'j'\nrequire_relative 'guest/a'\nmodule J; module Guest; X = 1; end; end",
           "j/guest/a.rb" => "module J; module Guest; class A; def x = J::Host.new; end; end; end",
           "j/guest/more.rb" => "require_relative '../guest'", "j.rb" => "module J; class Host; end; end" }.freeze

  def test_what_is_behind_its_door_is_none
    assert_empty past(DOOR)
  end

  def test_who_names_or_requires_something_behind_it_is_found
    host = "module J; class Host; def x = %s; end; end"
    assert_equal ["j -> j/guest/a (Guest::A)"], past(DOOR.merge("j.rb" => format(host, "Guest::A.new")))
    assert_equal ["j -> j/guest (Guest::X)"], past(DOOR.merge("j.rb" => format(host, "Guest::X")))
    assert_equal ["j.rb -> j/guest/a.rb (require)"], past(DOOR.merge("j.rb" => "require 'j/guest/a'", "j/guest.rb" => <<~RUBY))
      require_relative "guest/a"
    RUBY
    assert_equal ["j.rb requires j/guest"], past(DOOR.merge("j.rb" => "def x\n  require \"j/guest\"\nend"))
  end

  def test_a_file_in_the_folder_that_the_door_does_not_load_is_found
    assert_equal ["j/guest/other is not behind j/guest"], past(DOOR.merge("j/guest/other.rb" => "module J; end"))
  end

  private

  def past(texts) = House.new("made/up", texts).past("j/guest")
end
