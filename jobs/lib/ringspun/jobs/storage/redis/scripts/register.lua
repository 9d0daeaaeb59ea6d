-- Short, for it is sent as a whole before each wait. ARGV: the namespace's prefix, a node, a queue whose jobs the node is about
-- to get.
redis.call('HDEL', ARGV[1] .. 'ringspun:gone', ARGV[2]) -- see shared/keys.lua
redis.call('SADD', ARGV[1] .. 'ringspun:nodes', ARGV[2])
redis.call('SADD', ARGV[1] .. 'ringspun:lists:' .. ARGV[2], ARGV[3])
