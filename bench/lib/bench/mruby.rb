# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"

module Bench
  # The tables of mruby: each sample is a run of bench/mruby/work.rb, in mruby with our gem, in mruby with the gem concurrently,
  # or in Ruby with ours.
  module Mruby
    WORK = File.join(ROOT, "bench/mruby/work.rb")
    OURS = "plain"
    PEER = "concurrently"
    RUBY = [RbConfig.ruby, "-rringspun/core_ext"].freeze
    ON_RUBY = "ringspun on CRuby"
    # What of a build is the gem's, and where its size is that of a build for size.
    GEMS = { OURS => "mruby-ringspun", PEER => "mruby-concurrently" }.freeze
    SMALL = "small"
    SIMULATION = %r{/backend/sim/|/simulation\.o\z}
    FLOOR = "floor"
    FLOOR_SOURCE = File.join(ROOT, "bench/mruby/floor.c")
    C_FLOOR = "C floor"

    module_function

    # Builds what is not built, once in a process; for the parent.
    def built
      @built ||= build.then { true }
    end

    def build(environment = {})
      out, status = Open3.capture2e(environment, RbConfig.ruby, "-rbundler/setup", "-S", "rake",
                                    *[*GEMS.keys, SMALL, FLOOR].map { |name| "mruby:#{name}" }, chdir: ROOT)
      raise Unavailable, out.lines.first.to_s.chomp unless status.success?
    end

    # Declares all contenders. Ours run `scale` times as often as the peer. The block is given a meter, the command and the build
    # that is in it, and the sizes.
    def contend(table, scale:, &body)
      table.beforehand { Mruby.built }
      table.contender(PEER, size: { scale: 1 }) { |meter, **size| body.call(meter, [program(PEER)], PEER, **size) }
      # The machine that the child has is on the backend that is asked for.
      table.contender(SUBJECT, requires: "ringspun", size: { scale: }, backends: %w[uring epoll]) do |meter, **size|
        backend = Ringspun.run { |machine| machine.backend.name.to_s }
        body.call(meter, [{ "RINGSPUN_BACKEND" => backend }, program(OURS)], OURS, **size)
      end
      table.beside(ON_RUBY, requires: "ringspun", size: { scale: }) { |meter, **size| body.call(meter, RUBY, nil, **size) }
      table.bare(C_FLOOR, size: { scale: }) { |meter, **size| body.call(meter, [floor_program], nil, **size) }
      table.reference("bare", size: { scale: }) { |meter, **size| body.call(meter, [program(OURS)], nil, kind: "floor", **size) }
    end

    # What a program says of that many operations: work.rb, or one that is whole.
    def work(command, row, count, kind: "library")
      does = command.last == floor_program ? [] : [WORK, kind]
      out, status = Open3.capture2e(*command, *does, row, count.to_s)
      raise out[/^.*Error.*$/] || out unless status.success?

      JSON.parse(out, symbolize_names: true)
    end

    def floor_program = File.join(ROOT, "tmp/mruby/floor")
    def program(build) = File.join(ROOT, "tmp/mruby/#{build}/host/bin/mruby")

    # Bytes of code and constants that the gem adds to libmruby, bytecode included: of ours in the build for size, and without the
    # simulation.
    def text(build)
      folder = build == OURS ? SMALL : build
      objects = Dir[File.join(ROOT, "tmp/mruby/#{folder}/host/mrbgems/#{GEMS.fetch(build)}/**/*.o")].grep_v(SIMULATION)
      out, status = Open3.capture2("size", *objects)
      raise Unavailable, "no binutils, for size" unless status.success?

      out.lines.drop(1).sum { |line| line.to_i }
    end
  end
end
