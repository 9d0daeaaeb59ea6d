-- Every key has the namespace's prefix, which each script gets as its first argument.
local function key(name) return ARGV[1] .. name end

local function queue_key(queue) return key('queue:' .. queue) end

-- The list of what a node has in flight of a queue, by Exq's name, see backup_queue_key in
-- https://github.com/akira/exq/blob/master/lib/exq/redis/job_queue.ex
local function backup(node, queue) return key('queue:backup::' .. node .. '::' .. queue) end

-- The set of queues of which a node may have something in flight.
local function lists_of(node) return key('ringspun:lists:' .. node) end

local function lock_key(lock) return key('unique:' .. lock) end

-- Keys that Exq reads as well. Without a namespace it reads them only with a colon in front, see nodes_key and node_info_key in
-- https://github.com/akira/exq/blob/master/lib/exq/redis/job_stat.ex
local function keys_of_exq(name) return { key(name), ARGV[1] == '' and ':' .. name or nil } end

-- A script that writes begins by this, unless its first write needs no memory, or may be refused. Out of memory, the server
-- refuses a first write that needs memory, but after a first write that needs none it allows all others
-- (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/BestPractices.Clients.Redis.LuaScripts.html, "stealth writes").
-- A node has to do this write anyhow: a node that writes is not gone.
local function begin_writing(node) redis.call('HDEL', key('ringspun:gone'), node or '') end
