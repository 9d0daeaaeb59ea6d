-- with: keys
-- Registers nodes and extends their leases.
-- ARGV: the namespace's prefix, milliseconds, the name of this call, then two for each node: its name, and "1" if the caller has
-- extended its lease before. Returns 0 for each whose lease had run out, and else 1.
--
-- The value of a lease is the call that has extended it, and the answer to that. A call that is sent again, because the answer
-- was lost, gets the same answer.
local lasts, call = ARGV[2], ARGV[3]
local answers = {}
for i = 4, #ARGV, 2 do
  local node, known = ARGV[i], ARGV[i + 1] == '1'
  begin_writing(node)
  local new = redis.call('SADD', key('ringspun:nodes'), node) == 1 and not known
  local lease = key('ringspun:alive:' .. node)
  local held = redis.call('GET', lease)
  local answer = (new or held and held ~= call .. ' 0') and 1 or 0
  redis.call('SET', lease, call .. ' ' .. answer, 'PX', lasts)
  answers[#answers + 1] = answer
end
return answers
