Tool.register("rankComments", {
  description = "Adds the findings up by comment, the worst first.",
  properties = {
    findings = { type = "array" },
    _output = { type = "array" },
  },
  required = { "findings" },
})

-- The findings come in the order in which the checks happened to finish, so
-- everything that is made of them is sorted.
Activity.register("rankComments", function(call)
  local byComment, ranking = {}, {}
  table.sort(call.findings, function(a, b)
    if a.comment ~= b.comment then
      return a.comment < b.comment
    end
    return a.check < b.check
  end)
  for _, finding in ipairs(call.findings) do
    local entry = byComment[finding.comment]
    if not entry then
      entry = { comment = finding.comment, score = 0, reasons = json.array() }
      byComment[finding.comment] = entry
      ranking[#ranking + 1] = entry
    end
    entry.score = entry.score + finding.score
    if finding.reason then
      table.insert(entry.reasons, finding.reason)
    end
  end
  table.sort(ranking, function(a, b)
    if a.score ~= b.score then
      return a.score > b.score
    end
    return a.comment < b.comment
  end)
  return ranking
end)

Tool.register("summarise", {
  description = "Says what to do with how many comments.",
  properties = {
    ranking = { type = "array" },
    removeFrom = { type = "number" },
    reviewFrom = { type = "number" },
  },
  required = { "ranking", "removeFrom", "reviewFrom" },
})

Activity.register("summarise", function(call)
  local remove, review, kept = json.array(), json.array(), 0
  for _, entry in ipairs(call.ranking) do
    if entry.score >= call.removeFrom then
      table.insert(remove, entry.comment)
    elseif entry.score >= call.reviewFrom then
      table.insert(review, entry.comment)
    else
      kept = kept + 1
    end
  end
  return { remove = remove, review = review, kept = kept, worst = call.ranking[1] }
end)
