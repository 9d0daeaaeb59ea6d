-- with: keys clock cron
-- Says which entries a program has. ARGV: the namespace's prefix, the program, whether to write what is there anew, seconds after
-- which one of its entries that it does not have is forgotten, and one of another program, seconds that a tick may be later than
-- now, then three for each: its name, its schedule, and its text.
-- Returns the time, and for each its last tick, "" if it is another program's.
begin_writing()
local now, score = clock()
local source, fresh, stale, forget, ahead = ARGV[2], ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local answers, named = { score }, {}
for i = 7, #ARGV, 3 do
  local name, schedule = ARGV[i], ARGV[i + 1]
  local entry = cron_key(name)
  local theirs, known, tick = unpack(redis.call('HMGET', entry, 'source', 'schedule', 'tick'))
  local seen = tonumber(redis.call('ZSCORE', all_crons, name) or '0')
  named[name] = true
  if theirs and theirs ~= source and seen > now - stale then
    answers[#answers + 1] = ''
  else
    local anew = fresh or theirs ~= source
    if not tick or tonumber(tick) > now + ahead or (anew and known ~= schedule) then tick = score end
    redis.call('HSET', entry, 'tick', tick)
    if anew then redis.call('HSET', entry, 'source', source, 'schedule', schedule, 'text', ARGV[i + 2]) end
    redis.call('ZADD', all_crons, score, name)
    answers[#answers + 1] = tick
  end
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', all_crons, '-inf', string.format('%.6f', now - stale))) do
  local theirs = redis.call('HGET', cron_key(name), 'source')
  local seen = tonumber(redis.call('ZSCORE', all_crons, name))
  if not named[name] and (theirs == source or seen <= now - forget) then
    redis.call('ZREM', all_crons, name)
    redis.call('UNLINK', cron_key(name), cron_runs_key(name))
  end
end
return answers
