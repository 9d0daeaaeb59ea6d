-- with: keys
-- Registers a node and its list for a queue, before the node waits there. ARGV: the namespace's prefix, the node, the queue.
begin_writing(ARGV[2])
redis.call('SADD', key('ringspun:nodes'), ARGV[2])
redis.call('SADD', lists_of(ARGV[2]), ARGV[3])
