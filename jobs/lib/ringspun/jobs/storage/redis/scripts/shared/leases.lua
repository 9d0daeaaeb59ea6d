-- Leases of nodes. Each is a key that the server forgets when it is over. While the server stands still, is away or has its clock
-- set, nobody can extend one, and who comes first then would take over what all others run. So a hash has for each lease until when
-- it is and for how many seconds it was extended last; and by no name when a lease was last extended, or looked at.
--
-- A node that lives extends its lease within half of it, see Config#beat. So a longer time without that is an outage: nobody's
-- lease runs out in it, and after it each has what was left of it, up to half of all, which is enough for one who lives. To fall
-- behind for a moment is no outage.
local leases, OUTAGE = key('ringspun:leases'), 1

local function lease_key(node) return key('ringspun:alive:' .. node) end

local function keep_lease(node, value, left, lasts, now)
  redis.call('SET', lease_key(node), value, 'PX', string.format('%.0f', math.ceil(left * 1000)))
  redis.call('HSET', leases, node, string.format('%.6f %.6f', now + left, lasts), '', score_of(now))
end

local function forget_lease(node)
  redis.call('DEL', lease_key(node))
  if redis.call('HDEL', leases, node) == 1 and redis.call('HLEN', leases) == 1 then redis.call('DEL', leases) end
end

local function move_scores(set, from, to, seconds)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '(' .. score_of(from), to)) do
    redis.call('ZINCRBY', set, score_of(seconds), member)
  end
end

-- What holds places in queues with a limit, and old runs, which goes by the same clock.
local function move_limits(since, seconds)
  for _, queue in ipairs(redis.call('HKEYS', limits)) do
    move_scores(places_of(queue), since, score_of(RUNNING), seconds)
    move_scores(places_of(queue), RUNNING + since, '+inf', seconds)
    move_scores(old_runs_of(queue), since, '+inf', seconds)
  end
end

-- The leases that were not over then, and the longest time for which one of them was extended.
local function leases_at(time)
  local all, lasted, longest = redis.call('HGETALL', leases), {}, 0
  for i = 1, #all, 2 do
    local ends, lasts = string.match(all[i + 1], '^(%S+) (%S+)$')
    if ends and tonumber(ends) > time then
      lasted[#lasted + 1] = { node = all[i], ends = tonumber(ends), lasts = tonumber(lasts) }
      longest = math.max(longest, tonumber(lasts))
    end
  end
  return lasted, longest
end

-- `seconds` have passed since that time, or the clock was set back by them.
local function stand_still(since, seconds, now)
  local lasted, longest = leases_at(since)
  if #lasted == 0 or seconds >= 0 and seconds <= longest / 2 then return end
  for _, lease in ipairs(lasted) do
    local left = lease.ends - since
    if seconds >= 0 then left = math.max(lease.ends - now, math.min(left, lease.lasts / 2)) end
    keep_lease(lease.node, redis.call('GET', lease_key(lease.node)) or '', left, lease.lasts, now)
  end
  move_limits(seconds < 0 and 0 or since, seconds)
end

-- Whoever extends leases or looks for those that are over does this first.
local function note_outage(now)
  local beaten = tonumber(redis.call('HGET', leases, '') or nil)
  if not beaten then return end
  redis.call('HSET', leases, '', score_of(now))
  local passed = now - beaten
  if passed < 0 or passed > OUTAGE then stand_still(beaten, passed, now) end
end
