/**
 * The words of the sample, all invented; addresses use the reserved domain `.example` (RFC 2606). A `{slot}` in a sentence
 * is filled from the facts of a call.
 */

/** The meaning of each slot. */
export type Facts = Readonly<Record<string, string>>;

/** Throws a RangeError for a slot that the facts don't have. */
export function fill(template: string, facts: Facts): string {
  return template.replace(/\{(\w+)\}/g, (_slot, name: string) => {
    const fact = facts[name];
    if (fact === undefined) throw new RangeError(`the sample knows no fact called ${name}`);
    return fact;
  });
}

/** Names by commas, as they are written; behind a slash as in an address, unless that is just their letters. */
function parseNames(text: string): readonly (readonly [written: string, address: string])[] {
  return text.split(/,\s+/).map((entry) => {
    const [written = '', address = written.toLowerCase().replaceAll(/[^a-z]/g, '')] = entry.split('/');
    return [written, address];
  });
}

export const GIVEN_NAMES = parseNames(
  'Priya, Marcus, Elena, Zoë/zoe, Daniel, Łukasz/lukasz, Grace, José/jose, Kenji, Fatima, Ingrid, محمد/mohammed, 美咲/misaki',
);
export const FAMILY_NAMES = parseNames(
  "Raman, Okafor, Lindqvist, Nguyen, Costa, O'Brien, Moreau, Tanaka, Müller/mueller, van der Berg, Haddad, Reyes",
);
/** Companies on the buying side. */
export const ACCOUNTS = parseNames(
  'Harbor & Pine Foods/harborpine, Kestrel Aviation, Bluewater Hotels, Café Anatolia/cafeanatolia, Greenfield Co-op, Arden & Wolfe LLP/ardenwolfe, Nimbus Robotics, Société Laurent/laurent, Saffron Retail, Juniper Health',
);

/** A workspace's own company and what it sells. */
export const VENDORS = [
  { domain: 'northbeam.example', product: 'Northbeam', unit: 'seats', unitPrice: 68 },
  { domain: 'heliofreight.example', product: 'Helio Dispatch', unit: 'vehicles', unitPrice: 41 },
  { domain: 'castella.example', product: 'Castella Guard', unit: 'endpoints', unitPrice: 9 },
  { domain: 'meridianpay.example', product: 'Meridian', unit: 'employees', unitPrice: 14 },
] as const;

export const WORDS = {
  months: ['January', 'March', 'June', 'September', 'November'],
  weekdays: ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'],
  times: ['nine thirty', 'ten', 'two in the afternoon'],
  roles: ['VP Operations', 'Head of Finance', 'Director of IT', 'Procurement Lead', 'CFO', 'COO'],
  modules: ['the live board', 'early alerts', 'scheduled reports', 'the mobile app', 'the audit log'],
  systems: ['Salesforce', 'SAP', 'Okta', 'Workday', 'Snowflake', 'ServiceNow'],
  rivals: ['Chartwell', 'Plotline', 'Quantboard', 'Sentrium'],
  /** Tools that buyers make do with today. */
  tools: ['spreadsheets', 'a shared inbox and a whiteboard', 'exports and a macro'],
  pains: [
    'three teams report three different numbers',
    'every report is rebuilt by hand',
    'overtime is keyed in twice and is still wrong',
    'two people watch four thousand alerts a week',
  ],
  outcomes: ['one agreed number', 'a response time under thirty minutes', 'every month closed in a day'],
};

/** Paragraphs of a script, by their lines. */
function parseScript(script: string): readonly (readonly string[])[] {
  const paragraphs = script.trim().split('\n\n');
  return paragraphs.map((paragraph) => paragraph.split('\n'));
}

export type Section = ReturnType<typeof section>;

/**
 * A part of a scorecard. The script has, for each thing that it asks of a call: name; description; comments on a good and
 * on a poor call; tip.
 */
function section(name: string, question: string, script: string) {
  const criteria = parseScript(script).map(([criterion = '', description = '', good = '', poor = '', tip = '']) => {
    return { id: idOf(criterion), name: criterion, description, good, poor, tip };
  });
  return { key: idOf(name), name, question, criteria };
}

function idOf(name: string): string {
  return name.toLowerCase().replaceAll(' ', '_');
}

const opening = section(
  'Opening',
  'What has changed at {account} since we last spoke?',
  `
Sets a shared agenda
States the purpose and the time, and asks the buyer what they would add.
Agreed the agenda in the first two minutes and made room for what {buyer} wanted to add.
Went straight into the product; {buyer} only raised pricing near the end because nobody had asked.
Open with purpose, time and outcome, then ask what would make the meeting worth it for them.
`,
);
const discovery = section(
  'Discovery',
  'What does it cost you when {pain}?',
  `
Uncovers the underlying problem
Goes past the first answer to what causes the problem and whom it hurts.
Got to the point that {pain} and stayed with it for four questions.
{buyer} hinted that {pain}, and the call moved on to the demo.
Ask for the last time it went wrong, then what it led to, before you show anything.

Maps the decision process
Names who decides, who influences, and the steps up to a signature.
Established that {colleague} holds the budget and when to bring the contract.
It stayed open who signs; {colleague} was on the call and never asked.
Ask how the last purchase of this size was decided, step by step.
`,
);
const pricing = section(
  'Pricing',
  'What would make it an easy yes?',
  `
Frames value before price
The price comes after the cost of the problem is known.
Set {net} a year against the cost that {buyer} had named.
Gave {price} a month within five minutes, with nothing beside it.
Restate their number before you say yours.
`,
);
const nextSteps = section(
  'Next steps',
  'What could you get me by {weekday}?',
  `
Books the next meeting
Date, people and purpose are agreed before the call ends.
Booked {weekday} at {time} with the three people who matter.
Ended with a promise to send something over.
Open the calendar while they are still on the line.
`,
);

/** A scorecard that every workspace has, and how its criteria are scored. */
export interface CardTemplate {
  readonly name: string;
  readonly sections: readonly Section[];
  readonly scale: 'points' | 'words';
}

/** The card of a call that was scored without one. */
export const FALLBACK_CARD: CardTemplate = { name: 'Ad-hoc review', sections: [opening, discovery], scale: 'words' };
export const CARD_TEMPLATES = [
  { name: 'Discovery Call Excellence', sections: [opening, discovery, nextSteps], scale: 'points' },
  { name: 'Negotiation & Close', sections: [discovery, pricing, nextSteps], scale: 'points' },
  { name: 'MEDDICC Qualification', sections: [discovery, pricing], scale: 'words' },
] as const satisfies readonly CardTemplate[];

/**
 * A call opens and closes with these lines, with the exchanges between. Each line begins with who says it: `S` the seller,
 * `B` the buyer, `C` a colleague of the buyer. No line holds a colon followed by a space, which would read as another
 * speaker's name.
 */
export const DIALOGUE = {
  opening: parseScript(`
S Hi {buyer}, thanks for making the time today. Can you hear me all right?
B Loud and clear. How are you, {seller}?
S Doing well. I would like to hear where things stand at {account}, show you the part of {product} that fits, and agree whether a next step makes sense. Anything you would add?
B I would add pricing. {colleague} will ask me about it the minute I hang up.
C Hello, {colleague} here, sorry I am late. The other meeting ran over.
`).flat(),
  exchanges: parseScript(`
S So tell me what made you take this call now rather than six months ago.
B Honestly, {pain}. It came up in the last leadership meeting and it landed on my desk.

S How are you handling that today?
B Mostly with {tool} and a lot of goodwill. One very patient analyst on my side keeps it alive.
S And what happens when they are on holiday?
B I do it myself on a Sunday night.

S If you had to put a number on it, what does that cost you in a month?
B We looked at it. About {cost} thousand, if you count the rework.

S Let me share my screen. This is {module} with data that looks like yours. Can you see it?
B Yes, I see it. The left half is cut off, but go on.
S Every open item is sorted by how much is at stake, straight from {system}, refreshed every ten minutes.

B I will be honest with you, {rival} is about a fifth cheaper on paper.
S Then let us compare the first-year total side by side. If they still win, I will tell you so.

B So what does it cost?
S For {seats} {unit} the list price is {price} a month each, so about {total} a year.
B That is more than I hoped.
S With an annual prepayment I can take {discount} percent off, which brings you to {net} a year.
`),
  closing: parseScript(`
S Let me play back what I heard. You say that {pain}, you want {outcome}, and it has to run by {month}. Did I miss anything?
B No, that is it. And {colleague} wants the contract early.
S As a next step I suggest a working session with your IT on {weekday} at {time}, with {system} on the table.
B Send me the invite, and I will get you the figures for last quarter.
S Then thank you both. You have my notes in your inbox by six.
B Thanks, {seller}. Speak on {weekday}.
S Speak then. Bye.
B Bye.
`).flat(),
  /** Short answers that fall in between. */
  asides: ['B Right.', 'S Got it.', 'C Sure.', 'S That makes sense.', 'C One second, I was on mute. Yes, agreed.'],
  /** Said in between in some calls; combining marks, control characters and half an emoji are as broken recorders leave them. */
  oddAsides: [
    'B שלום, אני אענה רגע בעברית, אנחנו צריכים תשובה עד יום ראשון.',
    'C نعم، الميزانية حوالي {budget}، ولكن القرار ليس لي وحدي.',
    'B Love it 🎉 {module} is exactly what we asked for 👍🏽',
    'C My kids say hi 👨‍👩‍👧‍👦 sorry about the noise.',
    'B We call it the Zoe\u0308 re\u0301sume\u0301 internally, do not ask why.',
    'C The line broke up\u0007 for a second there.',
    'S I said page\u000Bbreak, not coffee break.',
    'B And then the chat cut off in the middle of a smiley \uD83D',
  ],
};
