-- with: keys clock priority wake push cron
-- Pushes the job of a tick, and notes the tick. ARGV: the namespace's prefix, milliseconds within which a push with a lock may be
-- sent again, how many runs are kept, the entry's name, the tick or "", and six for the push, if there is one.
-- Returns what has become of it. Nothing may raise once the job is stored.
local name, tick = ARGV[4], ARGV[5]
local entry = cron_key(name)
local last, paused = unpack(redis.call('HMGET', entry, 'tick', 'paused'))
if not last then return 'unknown' end
if tick ~= '' and paused == '1' then return 'paused' end
if tick ~= '' and tonumber(tick) <= tonumber(last) then return 'passed' end
local now, score = clock()
local answer, jid = '', '-'
if #ARGV > 5 then
  answer = push(6, now, ARGV[2])
  if string.sub(answer, 1, 1) == '!' then return redis.error_reply(string.sub(answer, 2)) end
  if answer == '' and ARGV[8] ~= '' then jid = ARGV[8] end
else
  begin_writing()
end
if tick ~= '' then redis.pcall('HSET', entry, 'tick', tick) end
local runs = cron_runs_key(name)
redis.pcall('LPUSH', runs, (tick == '' and '-' or tick) .. ' ' .. score .. ' ' .. jid)
redis.pcall('LTRIM', runs, 0, ARGV[3] - 1)
deal()
return answer == '' and 'pushed' or 'held'
