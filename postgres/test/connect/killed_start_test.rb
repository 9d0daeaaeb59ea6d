# frozen_string_literal: true

require_relative "scripted_case"
require "socket"

# A thread that is killed while it connects: no exception is raised then, and only `ensure` is run.
class KilledStartTest < ScriptedCase
  STAGES = {
    greeting: { sslmode: "disable", answers: [] },
    answer_whether_there_is_tls: { sslmode: "require", answers: [] },
    handshake: { sslmode: "require", answers: ["S"] },
    password: { sslmode: "disable", answers: [Client.message("R", [5, "salt"].pack("NA4"))] },
    role: { sslmode: "disable", target_session_attrs: "primary",
            answers: [Client::OK + Client.message("K", [7, 8].pack("N2")) + Client::READY] }
  }.freeze

  STAGES.each do |name, stage|
    define_method("test_while_it_waits_for_the_#{name}") do
      TCPServer.open("127.0.0.1", 0) do |listener|
        where = { host: "localhost", hostaddr: "127.0.0.1", port: listener.addr[1], user: "me", password: "secret" }
        thread = Thread.new { connect(**where, **stage.except(:answers)) }
        client = listener.accept
        client.readpartial(1000)
        stage[:answers].each { |answer| client.write(answer) && client.readpartial(1000) }
        thread.kill.join
        assert_raises(EOFError) { loop { client.read_nonblock(1000) } }
      ensure
        client&.close
      end
    end
  end
end
