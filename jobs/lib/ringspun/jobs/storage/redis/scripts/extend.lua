-- with: keys clock limits leases
-- Registers nodes and extends their leases.
-- ARGV: the namespace's prefix, milliseconds, the name of this call, then two for each node: its name, and "1" if the caller has
-- extended its lease before. Returns 0 for each whose lease had run out, and else 1.
--
-- The value of a lease is the call that has extended it, and the answer to that. A call that is sent again, because the answer
-- was lost, gets the same answer.
local lasts, call, now = ARGV[2] / 1000, ARGV[3], clock()
local answers = {}
begin_writing()
note_outage(now)
for i = 4, #ARGV, 2 do
  local node, known = ARGV[i], ARGV[i + 1] == '1'
  begin_writing(node)
  local new = redis.call('SADD', key('ringspun:nodes'), node) == 1 and not known
  local held = redis.call('GET', lease_key(node))
  local answer = (new or held and held ~= call .. ' 0') and 1 or 0
  keep_lease(node, call .. ' ' .. answer, lasts, lasts, now)
  answers[#answers + 1] = answer
end
return answers
