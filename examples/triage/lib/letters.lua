-- The answers that the shop gives by itself. A model chooses which; it writes none.

local M = {}

local greeting = {
  en = "Dear {{name}},\n\n%s\n\nYours,\nAlder & Finch",
  de = "Guten Tag {{name}},\n\n%s\n\nIhre Alder & Finch",
  fr = "Bonjour {{name}},\n\n%s\n\nCordialement,\nAlder & Finch",
}

local texts = {
  en = {
    account = "we have closed the account, and you will get no further post from us.",
    change = "we have changed your order{{#if order}} {{order}}{{/if}} as you asked, unless it had left the house.",
    exchange = "we are sorry. We send what you ordered{{#if order}} ({{order}}){{/if}} once more, with a label for what came.",
    invoice = "the invoice{{#if order}} for {{order}}{{/if}} comes with a separate message in a few minutes.",
    received = "thank you for your message. Somebody reads it today, and answers by tomorrow evening.",
    thanks = "thank you. We have hung your message up in the workshop.",
    where = "we are asking the carrier about your order{{#if order}} {{order}}{{/if}}, and tell you by this evening.",
  },
  de = {
    account = "unser Beileid. Das Konto ist geschlossen{{#if order}}, die Bestellung {{order}} storniert{{/if}}; Post kommt keine mehr.",
    exchange = "das tut uns leid. Wir schicken Ihnen das Bestellte{{#if order}} ({{order}}){{/if}} noch einmal, mit einem Rücksendeschein.",
    received = "danke für Ihre Nachricht. Sie wird heute gelesen und bis morgen Abend beantwortet.",
    where = "wir fragen nach Ihrer Bestellung{{#if order}} {{order}}{{/if}} und melden uns bis heute Abend.",
  },
  fr = {
    exchange = "nous sommes désolés. Nous renvoyons votre commande{{#if order}} ({{order}}){{/if}}, avec une étiquette de retour.",
    invoice = "la facture{{#if order}} de la commande {{order}}{{/if}} part dans quelques minutes.",
    received = "merci de votre message. Il est lu aujourd'hui ; vous aurez une réponse demain soir au plus tard.",
  },
}

-- names are those of the answers, sorted.
M.names = { "account", "change", "exchange", "invoice", "received", "thanks", "where" }

-- template gives an answer in a language, or else what every language has.
function M.template(name, language)
  local text = texts[language][name] or texts[language].received
  return (greeting[language]:gsub("%%s", function() return text end))
end

return M
