-- Each case is an activity of that name; the comment is its error.

-- index: activities/faults.lua:5: attempt to index call.customer (a nil value), key "name"
Activity.register("index", function(call)
  return call.customer.name
end)

-- index a method: activities/faults.lua:10: attempt to index call.customer (a nil value), key "total"
Activity.register("index a method", function(call)
  return call.customer:total()
end)

-- assign: activities/faults.lua:15: attempt to index context.state (a nil value), key "x"
Activity.register("assign", function(call, context)
  context.state.x = 1
end)

-- call: activities/faults.lua:20: attempt to call tostrnig, which is not a function (did you mean tostring?)
Activity.register("call", function(call)
  return string.format("%s", tostrnig(call))
end)

-- arithmetic: activities/faults.lua:25: attempt to perform arithmetic on call.total (a nil value)
Activity.register("arithmetic", function(call)
  return 1 + call.total
end)

-- concatenate: activities/faults.lua:30: attempt to concatenate call.name (a nil value)
Activity.register("concatenate", function(call)
  return "a" .. 1 .. call.name .. "b"
end)

-- compare: activities/faults.lua:35: attempt to compare call.n (a nil value) with 3
Activity.register("compare", function(call)
  return call.n < 3
end)

-- compare greater: activities/faults.lua:40: attempt to compare 3 with call.n (a nil value)
Activity.register("compare greater", function(call)
  return call.n > 3
end)

-- length: activities/faults.lua:45: attempt to get the length of call.list (a nil value)
Activity.register("length", function(call)
  return #call.list
end)

-- for: activities/faults.lua:50: the limit of a for loop must be a number, not call.n (a nil value)
Activity.register("for", function(call)
  for i = 1, call.n do end
end)

-- argument: activities/faults.lua:55: bad argument #1 to table.insert: table expected, got call.list (a nil value)
Activity.register("argument", function(call)
  table.insert(call.list, 1)
end)

-- recursion: activities/faults.lua:60: stack overflow
Activity.register("recursion", function(call)
  local function f() return 1 + f() end
  return f()
end)

-- tail recursion: activities/faults.lua:66: stack overflow
Activity.register("tail recursion", function(call)
  local function f() return f() end
  return f()
end)

-- nil key: activities/faults.lua:73: table index is nil
Activity.register("nil key", function(call)
  local t = {}
  t[call.key] = 1
end)

-- string too long: activities/faults.lua:79: the string is too long: limits.string in obelus.lua allows 16 MB
Activity.register("string too long", function(call)
  local s = "x"
  while true do s = s .. s end
end)

-- repeat too long: activities/faults.lua:84: the string is too long: limits.string in obelus.lua allows 16 MB
Activity.register("repeat too long", function(call)
  return ("x"):rep(1e9)
end)

-- format too wide: activities/faults.lua:89: invalid format (width or precision too long)
Activity.register("format too wide", function(call)
  return string.format("%1000000d", 1)
end)

-- format verb: activities/faults.lua:94: invalid option '%v' to 'format'
Activity.register("format verb", function(call)
  return string.format("%v", 1)
end)

-- format value: activities/faults.lua:99: bad argument #2 to string.format: no value
Activity.register("format value", function(call)
  return string.format("%d")
end)

-- late register: activities/faults.lua:104: Activity.register belongs at the top level of a script, not into a function that runs later
Activity.register("late register", function(call)
  Activity.register("x", function() end)
end)

-- bad path: activities/faults.lua:109: bad argument #1 to Output.to: bad path "state.x": a path begins with † at column 1
Activity.register("bad path", function(call)
  return Output.to("state.x", 1)
end)

-- nan: activities/faults.lua: activity nan: result.items[2].price: NaN is not a JSON number
Activity.register("nan", function(call)
  return { items = { { price = 1 }, { price = 0 / 0 } } }
end)

-- infinity: activities/faults.lua: activity infinity: result["a key"]: infinity is not a JSON number
Activity.register("infinity", function(call)
  return { ["a key"] = math.huge }
end)

-- function: activities/faults.lua: activity function: result.f: a function is not a JSON value
Activity.register("function", function(call)
  return { f = print }
end)

-- cycle: activities/faults.lua: activity cycle: result.a.b: the table contains itself
Activity.register("cycle", function(call)
  local t = { a = {} }
  t.a.b = t
  return t
end)

-- deep: activities/faults.lua: activity deep: result.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t.t…: it is nested too deep: limits.depth in obelus.lua allows 128
Activity.register("deep", function(call)
  local t = {}
  for i = 1, 200 do t = { t = t } end
  return t
end)

-- billions: activities/faults.lua: activity billions: result: more than 1048576 values
Activity.register("billions", function(call)
  local t = {}
  for i = 1, 60 do t = { t, t } end
  return t
end)

-- text: activities/faults.lua: activity text: result.s: the text is not valid UTF-8
Activity.register("text", function(call)
  return { s = "a\255" }
end)

-- key: activities/faults.lua: activity key: result: the key "a\xff" is not valid UTF-8
Activity.register("key", function(call)
  return { ["a\255"] = 1 }
end)

-- mixed: activities/faults.lua: activity mixed: result.t: the table has the keys 1 to 2 and also "x": it is neither an array nor an object
Activity.register("mixed", function(call)
  return { t = { 1, 2, x = 3 } }
end)

-- hole: activities/faults.lua: activity hole: result[2]: a hole in an array: put json.null there
Activity.register("hole", function(call)
  return { 1, nil, 3 }
end)

-- number key: activities/faults.lua: activity number key: result: the table has the key 0: the keys of an array are 1, 2, 3 …, those of an object are strings
Activity.register("number key", function(call)
  return { [0] = 1 }
end)

-- boolean key: activities/faults.lua: activity boolean key: result: the table has a boolean for a key: keys are strings
Activity.register("boolean key", function(call)
  return { [true] = 1 }
end)

-- output inside: activities/faults.lua: activity output inside: result.x: Output.to(…) must be returned by itself
Activity.register("output inside", function(call)
  return { x = Output.to("†a", 1) }
end)

-- text message: activities/faults.lua: activity text message: result: an activity can return a message with data, not one of type "text"
Activity.register("text message", function(call)
  return Message.text("hello")
end)

-- bad failure: activities/faults.lua: activity bad failure: error.f: a function is not a JSON value
Activity.register("bad failure", function(call)
  return nil, { f = print }
end)

-- bad raise: activities/faults.lua:195: error.f: a function is not a JSON value
Activity.register("bad raise", function(call)
  error({ f = print })
end)

local function filter(t) return t end

-- for over what a function gives: activities/faults.lua:202: for … in wants a function: put pairs(…) or ipairs(…) around filter(…)
Activity.register("for over what a function gives", function(call)
  for k, v in filter(call) do print(k, v) end
end)

-- for over a table: activities/faults.lua:208: for … in wants a function: put pairs(…) or ipairs(…) around call.items
Activity.register("for over a table", function(call)
  call.items = {}
  for k, v in call.items do print(k, v) end
end)

-- for over a written table: activities/faults.lua:213: for … in wants a function: put pairs(…) or ipairs(…) around the table
Activity.register("for over a written table", function(call)
  for k, v in { 1 } do print(k, v) end
end)

-- for over a method's result: activities/faults.lua:219: attempt to call a value that is not a function: if it is what for … in was given, put pairs(…) or ipairs(…) around call:items(…)
Activity.register("for over a method's result", function(call)
  call.items = filter
  for k, v in call:items() do print(k, v) end
end)

-- for with a missing function: activities/faults.lua:224: attempt to call a value that is not a function: if it is what for … in was given, put pairs(…) or ipairs(…) around fliter(…)
Activity.register("for with a missing function", function(call)
  for k, v in fliter(call) do print(k, v) end
end)

-- for with a missing function in it: activities/faults.lua:229: attempt to call prnit, which is not a function (did you mean print?)
Activity.register("for with a missing function in it", function(call)
  for k, v in pairs(call) do prnit(k, v) end
end)

-- for over a missing library: activities/faults.lua:234: io.popen is not available in scripts
Activity.register("for over a missing library", function(call)
  for line in io.popen("ls") do print(line) end
end)

-- a missing function beside another call: activities/faults.lua:239: string.dump is not available in scripts
Activity.register("a missing function beside another call", function()
  return string.dump(loadstring "a = 1")
end)
