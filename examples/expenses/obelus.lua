-- Every call of the tool payLarge is held until a person decides.
return {
  approve = "payLarge",
}
