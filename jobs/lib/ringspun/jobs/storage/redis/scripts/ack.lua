-- with: keys clock count jobs history taken limits
-- Takes jobs that are done out of a node's lists, where all of them need nothing else, as most do.
-- ARGV: the namespace's prefix, the node, milliseconds to keep a history, then three for each: queue, entry, jid.
-- Returns 1 for each that was there, and else 0.
local node = ARGV[2]
local _, score = clock()
local lists, done, answers = {}, {}, {}
for i = 4, #ARGV, 3 do
  local queue = ARGV[i]
  local list = lists[queue] or backup(node, queue)
  lists[queue] = list
  local there = take(list, ARGV[i + 1])
  if there == 0 then
    old_run_ended(node, queue, ARGV[i + 2])
  else
    done[#done + 1] = ARGV[i + 2]
    if queue == QUARANTINE then give_place_back(ARGV[i + 1]) end
  end
  answers[#answers + 1] = there
end
note_done(done, node, score, ARGV[3])
count('processed', #done)
forget_runs(done)
return answers
