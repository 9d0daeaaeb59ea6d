local function end_of_string(text, from)
  local at = string.find(text, '["\\]', from + 1)
  while string.sub(text, at, at) == '\\' do at = string.find(text, '["\\]', at + 2) end
  return at
end

-- The members of an object, each with its name, as they are written.
local function members(text)
  local all, depth, from, at = {}, 0, 0, 0
  while true do
    at = string.find(text, '["%[%]{},]', at + 1)
    if not at then return all end
    local sign = string.sub(text, at, at)
    if sign == '"' then
      at = end_of_string(text, at)
    elseif sign == '{' or sign == '[' then
      depth = depth + 1
      if depth == 1 then from = at + 1 end
    else
      if depth == 1 then
        all[#all + 1] = string.sub(text, from, at - 1)
        from = at + 1
      end
      if sign ~= ',' then depth = depth - 1 end
    end
  end
end

local function without(text, fields)
  local left = {}
  for _, member in ipairs(members(text)) do
    if not fields[string.match(member, '^%s*"([^"]*)"')] then left[#left + 1] = member end
  end
  return '{' .. table.concat(left, ',') .. '}'
end
