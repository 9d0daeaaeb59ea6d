-- All keys have the namespace's prefix, which each script gets as its first argument.
local function key(name) return ARGV[1] .. name end

local function queue_key(queue) return key('queue:' .. queue) end

-- What a node has in flight of a queue, by Exq's name.
local function backup(node, queue) return key('queue:backup::' .. node .. '::' .. queue) end

-- The queues of which a node may have something in flight.
local function lists_of(node) return key('ringspun:lists:' .. node) end

local function lock_key(lock) return key('unique:' .. lock) end

-- Of what Exq knows as well. Without a namespace it looks for these keys with a colon in front, and only there.
local function keys_of_exq(name) return { key(name), ARGV[1] == '' and ':' .. name or nil } end

-- Whoever writes begins by this, unless its first write needs no memory anyhow, or may be refused: where memory is full the
-- server refuses a first write that needs some, but after one that needs none it allows all others
-- (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/BestPractices.Clients.Redis.LuaScripts.html, "stealth writes").
-- It is what a node has to do anyhow: who writes is not gone.
local function begin_writing(node) redis.call('HDEL', key('ringspun:gone'), node or '') end
