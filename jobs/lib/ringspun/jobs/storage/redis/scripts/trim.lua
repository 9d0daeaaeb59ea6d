-- with: keys clock
-- Forgets dead jobs. ARGV: the namespace's prefix, how many stay, for how many seconds they stay.
local dead, now = key('dead'), clock()
redis.call('ZREMRANGEBYSCORE', dead, '-inf', string.format('%.6f', now - ARGV[3]))
redis.call('ZREMRANGEBYRANK', dead, 0, -ARGV[2] - 1)
