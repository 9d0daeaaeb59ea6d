-- with: keys
-- Registers a node before it waits. ARGV: the namespace's prefix, the node, a queue whose jobs the node is about to get.
begin_writing(ARGV[2])
redis.call('SADD', key('ringspun:nodes'), ARGV[2])
redis.call('SADD', lists_of(ARGV[2]), ARGV[3])
