-- with: keys jobs release priority find limits
-- Removes entries. ARGV: the namespace's prefix, "queue" or "set" and its name, then the entries. Returns 1 for each that was
-- there, and else 0; and nothing for the last ones, when it has compared too many.
local is_set, name = ARGV[2] == 'set', ARGV[3]
local answers = {}
begin_writing()
for i = 4, #ARGV do
  if has_compared_enough() then break end
  local entry = ARGV[i]
  local removed
  if is_set then
    removed = redis.call('ZREM', key(name), entry)
  else
    removed = remove_from(name, entry)
  end
  if removed == 1 then release_lock_of(entry) end
  if removed == 1 and name == QUARANTINE then give_place_back(entry) end
  answers[#answers + 1] = removed
end
deal()
return answers
