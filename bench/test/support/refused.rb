# frozen_string_literal: true

# A contender of a Ringspun that stands in for the real one, on a host that refuses io_uring.
Bench.table "refused" do
  contender "ringspun", requires: File.join(__dir__, "refusing_ringspun.rb") do |meter, **|
    meter.measure { nil }
    meter.note(:backend, Ringspun::Machine.given[:backend])
    meter.note(:sqpoll, Ringspun::Machine.given[:sqpoll])
    {}
  end
end
