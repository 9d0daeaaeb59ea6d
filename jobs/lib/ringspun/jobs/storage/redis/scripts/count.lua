-- with: count
-- ARGV: the namespace's prefix, how many more were processed, how many more have failed.
redis.call('HDEL', ARGV[1] .. 'ringspun:gone', '') -- see fetch.lua
count(ARGV[1], 'processed', tonumber(ARGV[2]))
count(ARGV[1], 'failed', tonumber(ARGV[3]))
