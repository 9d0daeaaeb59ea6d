-- with: clock
-- Pushes that need the server's clock or a lock. ARGV: the namespace's prefix, then six for each push: queue, entry, jid, the
-- time it is for ("@" and seconds since the epoch, "+" and seconds from now on, or nothing), the lock, milliseconds to hold it.
-- Answers one for each: "" (stored), "=" and who holds its lock, "!" and why it could not be stored.
local ns = ARGV[1]
local now = clock()
local answers = {}

local function store(queue, entry, time)
  if time == '' then
    local pushed = redis.pcall('LPUSH', ns .. 'queue:' .. queue, entry)
    return type(pushed) == 'table' and pushed.err or nil
  end
  local at = tonumber(string.sub(time, 2))
  if string.sub(time, 1, 1) == '+' then at = now + at end
  local added = redis.pcall('ZADD', ns .. 'schedule', string.format('%.6f', at), entry)
  return type(added) == 'table' and added.err or nil
end

for i = 2, #ARGV, 6 do
  local queue, entry, jid, time, lock, lasts = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local key = lock ~= '' and ns .. 'unique:' .. lock
  local taken = key and redis.pcall('SET', key, jid, 'NX', 'PX', lasts)
  local answer = ''
  if type(taken) == 'table' and taken.err then
    answer = '!' .. taken.err
  elseif key and not taken then
    local holder = redis.call('GET', key)
    if holder ~= jid then answer = '=' .. (holder or '') end
  else
    local refused = store(queue, entry, time)
    if refused then
      answer = '!' .. refused
      if key then redis.call('DEL', key) end
    elseif time == '' then
      redis.pcall('SADD', ns .. 'queues', queue)
    end
  end
  answers[#answers + 1] = answer
end
return answers
