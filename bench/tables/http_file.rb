# frozen_string_literal: true

require "bench/http/contenders"

Bench.table "http_file" do
  title "HTTP: a file"
  about "A file of 10 MB, which the program gives by `to_path`, to four clients. They compare all of the first answer, and " \
        "count the bytes of the others. nginx sends it by sendfile."
  size connections: 4, ms: 400, warm_ms: 100, skim: 1
  quick ms: 100
  warm_up ms: 0
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns

  Bench::Http.contend(self, "file", floors: %w[nginx])

  targets "cpu_ns <= 1.2 x floor", "cpu_ns <= 1.1 x ringspun epoll"
end
