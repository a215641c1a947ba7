---@meta _

-- Written by obelus types, which writes it again: changes are lost.

-- The globals of tests/**/*_test.lua.

---@param fn fun()
function after_each(fn) end

---@param fn fun()
function before_each(fn) end

---@param name string
---@param fn fun()
function describe(name, fn) end

---In a test: runs after it, also if it fails.
---@param fn fun()
function finally(fn) end

---@param name string
---@param fn fun()
function it(name, fn) end

---A test that is still to be written.
---@param name string
---@param fn? fun()
function pending(name, fn) end

---Runs before the first before_each, for each test: a test has a state of its own.
---@param fn fun()
function setup(fn) end

---Runs after the last after_each.
---@param fn fun()
function teardown(fn) end

---What can be called, and keeps what it was called with, for assert.spy.
---@class obelus.spy
---@overload fun(...: any): any
spy = {}

---@param fn function
---@return obelus.spy
function spy.new(fn) end

---Takes the place of a function in a table.
---@param table table
---@param name string
---@return obelus.spy
function spy.on(table, name) end

---Takes the place of a function in a table, and returns the result; more arguments are more
---results.
---@param table table
---@param name string
---@param result? any
---@return obelus.spy
function stub(table, name, result) end

---@class obelus.assert.Spy
---@field called fun(times?: integer)
---@field called_at_least fun(times: integer)
---@field called_at_most fun(times: integer)
---@field called_with fun(...: any)
---@field was obelus.assert.Spy
---@field was_called fun(times?: integer)
---@field was_called_with fun(...: any)
---@field was_not obelus.assert.Spy
---@field was_not_called fun()
---@field was_not_called_with fun(...: any)

---@alias obelus.assert.Two fun(expected: any, actual: any, message?: string): any
---@alias obelus.assert.One fun(value: any, message?: string): any
---@alias obelus.assert.Near fun(expected: number, actual: number, tolerance: number, message?: string): any
---@alias obelus.assert.Matches fun(pattern: string, text: any, message?: string): any
---@alias obelus.assert.Raises fun(fn: fun(), raised?: any, message?: string): any

---Assertions as luassert names them: words that only make a sentence count for
---nothing, and "not" or "no" turns the rest round.
---@class obelus.assert
---@overload fun(value: any, message?: any, ...: any): any, any
---@field spy fun(s: obelus.spy): obelus.assert.Spy
---@field stub fun(s: obelus.spy): obelus.assert.Spy
---@field a obelus.assert
---@field an obelus.assert
---@field are obelus.assert
---@field are_not obelus.assert
---@field be obelus.assert
---@field been obelus.assert
---@field boolean obelus.assert.One
---@field does obelus.assert
---@field does_not obelus.assert
---@field equal obelus.assert.Two the same by ==
---@field equals obelus.assert.Two
---@field error obelus.assert.Raises
---@field errors obelus.assert.Raises
---@field falsey obelus.assert.One
---@field falsy obelus.assert.One
---@field has obelus.assert
---@field has_error obelus.assert.Raises
---@field has_errors obelus.assert.Raises
---@field has_no obelus.assert
---@field has_no_error obelus.assert.Raises
---@field has_no_errors obelus.assert.Raises
---@field have obelus.assert
---@field is obelus.assert
---@field is_boolean obelus.assert.One
---@field is_false obelus.assert.One
---@field is_falsy obelus.assert.One
---@field is_function obelus.assert.One
---@field is_nil obelus.assert.One
---@field is_not obelus.assert
---@field is_not_nil obelus.assert.One
---@field is_number obelus.assert.One
---@field is_string obelus.assert.One
---@field is_table obelus.assert.One
---@field is_true obelus.assert.One
---@field is_truthy obelus.assert.One
---@field match obelus.assert.Matches
---@field matches obelus.assert.Matches
---@field near obelus.assert.Near
---@field no obelus.assert
---@field not_equal obelus.assert.Two
---@field not_equals obelus.assert.Two
---@field not_match obelus.assert.Matches
---@field not_matches obelus.assert.Matches
---@field not_nil obelus.assert.One
---@field not_same obelus.assert.Two
---@field number obelus.assert.One
---@field same obelus.assert.Two tables hold the same, all the way down
---@field same_as obelus.assert.Two
---@field string obelus.assert.One
---@field table obelus.assert.One
---@field truthy obelus.assert.One
---@field was obelus.assert
assert = {}
