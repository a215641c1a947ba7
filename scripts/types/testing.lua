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

---@param name string
---@param fn fun()
function it(name, fn) end

---A test that is still to be written.
---@param name string
---@param fn? fun()
function pending(name, fn) end

---@alias obelus.assert.Two fun(expected: any, actual: any, message?: string): any
---@alias obelus.assert.One fun(value: any, message?: string): any
---@alias obelus.assert.Near fun(expected: number, actual: number, tolerance: number, message?: string): any
---@alias obelus.assert.Matches fun(pattern: string, text: any, message?: string): any
---@alias obelus.assert.Raises fun(fn: fun(), raised?: any, message?: string): any

---Assertions as luassert names them: words that only make a sentence count for
---nothing, and "not" or "no" turns the rest round.
---@class obelus.assert
---@overload fun(value: any, message?: any, ...: any): any, any
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
