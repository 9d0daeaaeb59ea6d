# Enqueues jobs by Exq, with callers that make one call after the other, and prints what it took as a line of JSON. The project in
# which mix runs it has Exq and Redix, and poolboy for the strategy of that name. bench/peers/exq.rb starts it.
#
#   mix run --no-start exq.exs PORT STRATEGY CALLERS WARM_UP_SECONDS SECONDS BYTES

defmodule Peer do
  # What it ends with when the project lacks a library.
  @lacks 3
  @list "exq:queue:default"

  def main([port, strategy, callers, warm_up, seconds, bytes]) do
    Logger.configure(level: :error)
    need(Exq, "Exq")
    need(Redix, "Redix")
    if strategy == "poolboy", do: need(:poolboy, "poolboy")

    # Or it would connect to the Redis of its configuration.
    Application.put_env(:exq, :start_on_application, false)
    {:ok, _} = Application.ensure_all_started(:exq)
    port = String.to_integer(port)
    {:ok, redis} = Redix.start_link(host: "127.0.0.1", port: port)
    enqueue = enqueuer(strategy, port)
    arguments = fitting(redis, enqueue, String.to_integer(bytes))
    callers = String.to_integer(callers)
    warmed = measure(callers, String.to_float(warm_up), fn -> enqueue.(arguments) end)
    before = cpu()
    clock = now()
    times = measure(callers, String.to_float(seconds), fn -> enqueue.(arguments) end)
    real = now() - clock
    [user, system] = Enum.zip_with(cpu(), before, fn later, earlier -> (later - earlier) / 100 end)
    report(times, length(warmed), user, system, real)
  end

  defp need(module, name) do
    unless Code.ensure_loaded?(module) do
      IO.puts(name)
      System.halt(@lacks)
    end
  end

  # As many as there are schedulers, but for the default.
  defp enqueuer("default", port) do
    start(Peer.Default, port)
    fn arguments -> enqueue(Peer.Default.Enqueuer, arguments) end
  end

  defp enqueuer("named", port) do
    names = for number <- 1..System.schedulers_online(), do: :"Elixir.Peer.Named#{number}"
    Enum.each(names, &start(&1, port))
    enqueuers = names |> Enum.map(&:"#{&1}.Enqueuer") |> List.to_tuple()
    fn arguments -> enqueue(elem(enqueuers, :rand.uniform(tuple_size(enqueuers)) - 1), arguments) end
  end

  defp enqueuer("poolboy", port) do
    size = System.schedulers_online()
    names = for number <- 1..size, do: :"Elixir.Peer.Pooled#{number}"
    Enum.each(names, &start(&1, port))
    {:ok, free} = Agent.start_link(fn -> Enum.map(names, &:"#{&1}.Enqueuer") end)
    {:ok, pool} = :poolboy.start_link([worker_module: Peer.Pooled, size: size, max_overflow: 0], free)

    fn arguments ->
      :poolboy.transaction(pool, fn worker -> enqueue(Peer.Pooled.enqueuer(worker), arguments) end, :infinity)
    end
  end

  defp start(name, port) do
    {:ok, _} = Exq.start_link(name: name, mode: :enqueuer, host: "127.0.0.1", port: port, namespace: "exq")
  end

  defp enqueue(enqueuer, arguments), do: {:ok, _} = Exq.enqueue(enqueuer, "default", "HardJob", arguments)

  # Arguments that make an entry of that size, found by enqueuing one.
  defp fitting(redis, enqueue, bytes) do
    enqueue.([1021, "", %{"urgent" => true}])
    {:ok, entry} = Redix.command(redis, ["LINDEX", @list, "0"])
    {:ok, _} = Redix.command(redis, ["FLUSHALL"])
    [1021, String.duplicate("u", max(bytes - byte_size(entry), 0)), %{"urgent" => true}]
  end

  # Returns the nanoseconds of each call.
  defp measure(callers, seconds, call) do
    until = now() + seconds

    1..callers
    |> Enum.map(fn _ -> Task.async(fn -> calls(call, until, []) end) end)
    |> Enum.flat_map(&Task.await(&1, :infinity))
  end

  defp calls(call, until, times) do
    began = System.monotonic_time(:nanosecond)
    call.()
    ended = System.monotonic_time(:nanosecond)
    times = [ended - began | times]
    if ended / 1.0e9 < until, do: calls(call, until, times), else: times
  end

  defp now, do: System.monotonic_time(:nanosecond) / 1.0e9

  # Hundredths of a second that this process has taken, the user's and the system's.
  defp cpu do
    [_, rest] = File.read!("/proc/self/stat") |> String.split(") ", parts: 2)
    rest |> String.split(" ") |> Enum.slice(11, 2) |> Enum.map(&String.to_integer/1)
  end

  defp report(times, warmed, user, system, real) do
    count = length(times)
    sorted = times |> Enum.sort() |> List.to_tuple()
    average = Enum.sum(times) / count
    squares = Enum.reduce(times, 0.0, fn time, sum -> sum + (time - average) * (time - average) end)
    deviation = :math.sqrt(squares / count) / average

    numbers = [
      calls: count, calls_with_warm_up: count + warmed, user: user, system: system, real: real, average: average,
      deviation: deviation, median: elem(sorted, div(count, 2)), p99: elem(sorted, div(count * 99, 100))
    ]

    members = Enum.map_join(numbers, ",", fn {name, value} -> "\"#{name}\":#{value}" end)
    IO.puts("{\"list\":\"#{@list}\",#{members}}")
  end
end

# A worker of poolboy's: the name of an enqueuer that it has taken.
defmodule Peer.Pooled do
  use GenServer

  def start_link(free), do: GenServer.start_link(__MODULE__, free)
  def enqueuer(worker), do: GenServer.call(worker, :enqueuer, :infinity)

  @impl true
  def init(free), do: {:ok, Agent.get_and_update(free, fn [first | rest] -> {first, rest} end)}

  @impl true
  def handle_call(:enqueuer, _from, enqueuer), do: {:reply, enqueuer, enqueuer}
end

Peer.main(System.argv())
