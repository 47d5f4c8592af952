// The dialogs: the token of the viewer, and what a new run is for.

import { el, text, show } from "./dom.js";

function dialog(title, fields, yes, no) {
  const trouble = el("p", { class: "trouble", hidden: true });
  const cancel = el("button", { type: "button", text: no });
  const form = el(
    "form",
    { method: "dialog" },
    el("h2", { text: title }),
    ...fields,
    trouble,
    el("div", { class: "row end" }, cancel, el("button", { type: "submit", class: "main", text: yes })),
  );
  const node = el("dialog", { "aria-label": title }, form);
  document.body.append(node);
  cancel.addEventListener("click", () => node.close("cancel"));
  return { node, form, trouble };
}

const field = (word, input, note) =>
  el("label", { class: "field" }, el("span", { text: word }), input, note ? el("small", { text: note }) : null);

/** Asks for the token; gives null if the viewer has none. */
export function askToken(wasWrong) {
  const input = el("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const note = "The operator of evb serve has it. The page forgets it when this tab closes.";
  const { node, form, trouble } = dialog(
    "This service asks for a token",
    [field("Token", input, note)],
    "Go on",
    "Cancel",
  );
  show(trouble, wasWrong);
  text(trouble, "The service did not take that token.");
  return new Promise((resolve) => {
    let token = null;
    form.addEventListener("submit", () => (token = input.value.trim() || null));
    node.addEventListener("close", () => {
      node.remove();
      resolve(token);
    });
    node.showModal();
    input.focus();
  });
}

/** Asks for type and comment of a new run; gives null if there shall be none. `follows` says that another one goes on. */
export function askRun(types, follows = false) {
  const choices = el("datalist", { id: "run-types" }, ...types.map((one) => el("option", { value: one })));
  const type = el("input", {
    value: types[0],
    list: "run-types",
    required: true,
    maxlength: "64",
    autocomplete: "off",
  });
  const comment = el("input", { maxlength: "1000", autocomplete: "off" });
  const fields = [
    field("Type", type, "Such as physics, calibration, cosmics or test."),
    choices,
    field("Comment", comment),
  ];
  const { node, form } = follows
    ? dialog("Begin the next run", fields, "Begin", "Cancel")
    : dialog("Start a run", fields, "Start", "Cancel");
  return new Promise((resolve) => {
    let answer = null;
    form.addEventListener("submit", () => (answer = { type: type.value.trim(), comment: comment.value.trim() }));
    node.addEventListener("close", () => {
      node.remove();
      resolve(answer);
    });
    node.showModal();
    comment.focus();
  });
}
