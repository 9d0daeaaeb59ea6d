# frozen_string_literal: true

require "fileutils"
require "redis-client"
require "tmpdir"
require_relative "program"

# This process as one of another program, for the length of a block: in another folder and environment, in Rails or not, with
# Sidekiq's names or not. And the usual address of Redis is one of the test's, where a server answers or not.
module ProgramOf
  NOBODY = 1 # no port that anybody listens at
  VARIABLES = %w[APP_ENV RAILS_ENV RACK_ENV REDIS_URL RINGSPUN_JOBS_DIR].freeze

  def setup
    super
    @root = Dir.mktmpdir("ringspun-program-of-")
  end

  def teardown
    FileUtils.rm_rf(@root)
    super
  end

  def home = Ringspun::Jobs.const_get(:Home)

  def program(rails: false, production: false, sidekiq: false, answers: true, root: @root, env: {}, &)
    environment = production ? "staging" : "development"
    given = { **VARIABLES.to_h { |name| [name, nil] }, **(production && !rails ? { "RACK_ENV" => environment } : {}), **env }
    loaded = File.join(root, "app.rb")
    state = { home => { :@root => (root if rails), :@environment => (environment if rails), :@loaded => loaded },
              Ringspun::Jobs::Storage => { :@kept => ("ringspun/jobs/sidekiq is loaded" if sidekiq) } }
    with_environment(given) { with_state(state) { with_port(answers ? proxy.port : NOBODY, &) } }
  end

  private

  def with_environment(given)
    before = ENV.to_h
    ENV.update(given)
    yield
  ensure
    ENV.replace(before)
  end

  def with_state(state)
    before = state.to_h { |owner, values| [owner, values.keys.to_h { |name| [name, owner.instance_variable_get(name)] }] }
    set(state)
    yield
  ensure
    set(before)
  end

  def set(state) = state.each { |owner, values| values.each { |name, value| owner.instance_variable_set(name, value) } }

  def with_port(port)
    before = RedisClient::Config::DEFAULT_PORT
    replace_port(port)
    yield
  ensure
    replace_port(before)
  end

  def replace_port(port)
    RedisClient::Config.__send__(:remove_const, :DEFAULT_PORT)
    RedisClient::Config.const_set(:DEFAULT_PORT, port)
  end
end
