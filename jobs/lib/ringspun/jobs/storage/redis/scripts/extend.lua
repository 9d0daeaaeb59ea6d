-- Registers nodes and extends their leases. ARGV: the namespace's prefix, milliseconds, then two for each node: its name, and "1"
-- where the caller has extended its lease before. Answers 0 for each whose lease had run out, and else 1.
local ns, lasts = ARGV[1], ARGV[2]
local answers = {}
for i = 3, #ARGV, 2 do
  local node, known = ARGV[i], ARGV[i + 1] == '1'
  redis.call('HDEL', ns .. 'ringspun:gone', node) -- first: see fetch.lua
  local new = redis.call('SADD', ns .. 'ringspun:nodes', node) == 1 and not known
  local held = redis.call('SET', ns .. 'ringspun:alive:' .. node, '1', 'PX', lasts, 'GET')
  answers[#answers + 1] = (new or held) and 1 or 0
end
return answers
