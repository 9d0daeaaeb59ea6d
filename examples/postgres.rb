# frozen_string_literal: true

# Postgres with a thousand strands on a few connections: they ask at once, move money in transactions of which none is lost, and a
# report that takes too long ends on the server as well.
#
#   bin/bundle exec ruby examples/postgres.rb
#
# It uses the database of DATABASE_URL, or else a server of its own.
#
# Prints:
#   1000 questions answered over 1 connection
#   after 200 transfers there are still 10000 cents
#   the report took too long, and does not run on the server any more

require "ringspun/postgres"
require "tmpdir"

# One of its own, unless there is one.
def with_database
  return yield(ENV["DATABASE_URL"]) if ENV["DATABASE_URL"]

  folders = [*ENV["PATH"].split(":"), *Dir["/usr/lib/postgresql/*/bin"].sort.reverse]
  programs = folders.find { |path| File.executable?(File.join(path, "initdb")) }
  abort "There is no PostgreSQL: run bin/setup first, or name one in DATABASE_URL." unless programs

  Dir.mktmpdir { |folder| with_server(programs, folder) { |url| yield url } }
end

# Postgres refuses to run as root.
def with_server(programs, folder)
  other = Process.uid.zero? ? %w[setpriv --reuid=postgres --regid=postgres --clear-groups] : []
  system("chown", "postgres", folder, exception: true) if Process.uid.zero?
  data = File.join(folder, "data")
  system(*other, File.join(programs, "initdb"), "-D", data, "-U", "example", "-A", "trust", "--no-sync",
         out: File::NULL, chdir: "/", exception: true)
  pid = spawn(*other, File.join(programs, "postgres"), "-D", data, "-k", folder, "-h", "", %i[out err] => File::NULL, chdir: "/")
  begin
    yield "postgres:///postgres?user=example&host=#{folder}"
  ensure
    Process.kill(:INT, pid)
    Process.wait(pid)
  end
end

def wait_for(db)
  db.query("select 1")
rescue Ringspun::Postgres::ConnectError, Ringspun::Postgres::CannotConnectNow
  sleep 0.05
  retry
end

def ask(db, machine)
  strands = Array.new(1000) { |number| machine.spin { db.query_value("select $1::int", number) } }
  puts "#{strands.map(&:await).uniq.size} questions answered over 1 connection"
end

def move(db, from, to)
  db.transaction(retry: 5) do |t|
    [[from, -1], [to, 1]].each { |id, by| t.execute("update example_accounts set cents = cents + $2 where id = $1", id, by) }
  end
end

def transfer(db, machine)
  db.batch do |batch|
    batch.execute("create table example_accounts (id int primary key, cents int not null)")
    batch.execute("insert into example_accounts select id, 1000 from generate_series(1, 10) id")
  end
  Array.new(200) { |number| machine.spin { move(db, *[1 + (number % 10), 1 + (number * 7 % 10)].sort) } }.each(&:await)
  puts "after 200 transfers there are still #{db.query_value("select sum(cents) from example_accounts")} cents"
ensure
  db.execute("drop table if exists example_accounts")
end

def report(db, machine)
  db.query("select pg_sleep(60), 'a report'", timeout: 0.1)
rescue Ringspun::TimeoutError
  running = "select count(*) from pg_stat_activity where state = 'active' and query like 'select pg_sleep(60), %'"
  machine.sleep(0.01) until db.query_value(running).zero?
  puts "the report took too long, and does not run on the server any more"
end

with_database do |url|
  Ringspun.run do |machine|
    db = Ringspun::Postgres.connect(url, checkout_timeout: 60)
    wait_for(db)
    ask(db, machine)
    transfer(db, machine)
    report(db, machine)
  ensure
    db&.close
  end
end
