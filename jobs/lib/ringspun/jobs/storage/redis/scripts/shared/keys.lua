-- The namespace's prefix and its keys, and how a script begins to write.
local ns = ARGV[1]

local function queue_key(queue) return ns .. 'queue:' .. queue end

-- What a node has in flight of a queue, by Exq's name.
local function backup(node, queue) return ns .. 'queue:backup::' .. node .. '::' .. queue end

-- The queues of which a node may have something in flight.
local function lists_of(node) return ns .. 'ringspun:lists:' .. node end

-- When memory is full the server refuses a first write that needs some, and after one that needs none allows all others. It is
-- what a node has to do anyhow: who writes is not gone.
local function begin_writing(node) redis.call('HDEL', ns .. 'ringspun:gone', node or '') end
