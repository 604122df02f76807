/**
 * The words of the sample, all invented; addresses use the reserved domain `.example` (RFC 2606). Sentences are written in
 * a small grammar: `{slot}`, `{12-40}` for a number between, `[this|that]` for one of them.
 */
import type { Random } from './random.ts';

/** The meaning of each slot: one text, or several to draw from. */
export type Facts = Readonly<Record<string, string | readonly string[]>>;

/**
 * Writes a template out. Alternatives may hold slots, not other alternatives.
 * Throws a RangeError for a slot that the facts don't have.
 */
export function fill(template: string, facts: Facts, random: Random): string {
  return template
    .replace(/\[([^[\]]+)\]/g, (_choice, items: string) => random.pick(items.split('|')))
    .replace(/\{(?:(\d+)-(\d+)|(\w+))\}/g, (_slot, min: string, max: string, name: string | undefined) => {
      if (name === undefined) return String(random.int(Number(min), Number(max)));
      const fact = facts[name];
      if (fact === undefined) throw new RangeError(`the sample knows no fact called ${name}`);
      return typeof fact === 'string' ? fact : random.pick(fact);
    });
}

/** A name as it is written, and as it stands in an e-mail or web address. */
type Name = readonly [written: string, address: string];

/** Names by commas; behind a slash the address, unless it is the name's own letters in lower case. */
function parseNames(text: string): readonly Name[] {
  return parseItems(text).map((entry) => {
    const [written = '', address = written.toLowerCase().replaceAll(/[^a-z]/g, '')] = entry.split('/');
    return [written, address];
  });
}

function parseItems(text: string): readonly string[] {
  return text.trim().split(/,\s+/);
}

export const GIVEN_NAMES = parseNames(`
Priya, Marcus, Elena, Zoë/zoe, Daniel, Łukasz/lukasz, Grace, José/jose, Hannah, Kenji, Fatima, Chloé/chloe, Ravi, Ingrid,
Jamal, Siobhán/siobhan, محمد/mohammed, 美咲/misaki
`);
export const FAMILY_NAMES = parseNames(`
Raman, Okafor, Lindqvist, Nguyen, Costa, O'Brien, Moreau, Tanaka, Müller/mueller, Petrov, Adeyemi, van der Berg, Kowalska,
Haddad, Yamamoto, Reyes
`);
export const BUYER_ROLES = parseItems('VP Operations, Head of Finance, Director of IT, Procurement Lead, CFO, COO');
/** Companies on the buying side. */
export const ACCOUNTS = parseNames(`
Harbor & Pine Foods/harborpine, Kestrel Aviation, Bluewater Hotels, Ostrava Steelworks, Café Anatolia/cafeanatolia,
Greenfield Co-op, Tilbury Engineering, Arden & Wolfe LLP/ardenwolfe, Vantage Insurance, Nimbus Robotics,
Société Laurent/laurent, Saffron Retail, Juniper Health, Polar Ice Cream
`);
export const CALL_SOURCES = ['zoom', 'gong', 'teams', 'google_meet', 'upload', null] as const;
export const MONTHS = parseItems('January, March, June, September, November');
export const WEEKDAYS = parseItems('Monday, Tuesday, Wednesday, Thursday, Friday');
/** Tools that buyers make do with today. */
export const MAKESHIFTS = ['spreadsheets', 'a shared inbox and a whiteboard', 'exports and a macro'] as const;
export const CURRENCIES = [
  { sign: '$', code: 'USD' },
  { sign: '€', code: 'EUR' },
  { sign: '£', code: 'GBP' },
] as const;

/** A workspace's own company and what it sells. */
export interface Vendor {
  readonly domain: string;
  readonly product: string;
  readonly unit: string;
  readonly unitPrice: number;
  readonly modules: readonly string[];
  readonly systems: readonly string[];
  readonly rivals: readonly string[];
  readonly pains: readonly string[];
  readonly outcomes: readonly string[];
}

export const VENDORS: readonly Vendor[] = [
  {
    domain: 'northbeam.example',
    product: 'Northbeam',
    unit: 'seats',
    unitPrice: 68,
    modules: ['forecast boards', 'pipeline alerts', 'scheduled reports'],
    systems: ['Salesforce', 'Snowflake', 'HubSpot'],
    rivals: ['Chartwell', 'Plotline'],
    pains: ['three teams report three different revenue numbers', 'every board pack is rebuilt by hand'],
    outcomes: ['one agreed revenue number', 'a forecast within five percent'],
  },
  {
    domain: 'heliofreight.example',
    product: 'Helio Dispatch',
    unit: 'vehicles',
    unitPrice: 41,
    modules: ['live routing', 'proof of delivery', 'dock scheduling'],
    systems: ['SAP', 'the telematics boxes', 'the driver app'],
    rivals: ['Routewise', 'Freightpath'],
    pains: ['dispatchers replan the whole day by phone before nine', 'we drive about a fifth of our miles empty'],
    outcomes: ['late loads under three percent', 'eleven percent fewer empty miles'],
  },
  {
    domain: 'castella.example',
    product: 'Castella Guard',
    unit: 'endpoints',
    unitPrice: 9,
    modules: ['managed detection', 'phishing drills', 'device control'],
    systems: ['Okta', 'Intune', 'ServiceNow'],
    rivals: ['Bastionic', 'Sentrium'],
    pains: ['two people watch four thousand alerts a week', 'the service desk resets forty passwords a day'],
    outcomes: ['a response time under thirty minutes', 'every laptop accounted for'],
  },
  {
    domain: 'meridianpay.example',
    product: 'Meridian',
    unit: 'employees',
    unitPrice: 14,
    modules: ['time capture', 'the employee app', 'statutory filing'],
    systems: ['Workday', 'Xero', 'the rota tool'],
    rivals: ['Salarion', 'Wagewell'],
    pains: ['we correct about thirty payslips every single month', 'overtime is keyed in twice and is still wrong'],
    outcomes: ['payroll closed in one day', 'fewer than two corrections a month'],
  },
];

/** One thing that a scorecard asks of a call, and what a coach writes about it. */
export interface Criterion {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly good: string;
  readonly poor: string;
  readonly tip: string;
}
export interface Section {
  readonly key: string;
  readonly name: string;
  readonly questions: readonly string[];
  readonly criteria: readonly Criterion[];
}

const opening: Section = {
  key: 'opening',
  name: 'Opening and agenda',
  questions: [
    'What would make the next half hour worth your time?',
    'What has changed at {account} since we last spoke?',
  ],
  criteria: [
    {
      id: 'sets_agenda',
      name: 'Sets a shared agenda',
      description: 'States the purpose and the time, and asks the buyer what they would add.',
      good: 'Agreed the agenda in the first two minutes and made room for what {buyer} wanted to add.',
      poor: 'Went straight into the product; {buyer} only raised pricing near the end because nobody had asked.',
      tip: 'Open with purpose, time and outcome, then ask what would make the meeting worth it for them.',
    },
  ],
};
const discovery: Section = {
  key: 'discovery',
  name: 'Discovery',
  questions: ['What does it cost you when {pain}?', 'What happens if nothing changes before {month}?'],
  criteria: [
    {
      id: 'uncovers_pain',
      name: 'Uncovers the underlying problem',
      description: 'Goes past the first answer to what causes the problem and whom it hurts.',
      good: 'Got to the point that {pain} and stayed with it for four questions.',
      poor: '{buyer} hinted that {pain}, and the call moved on to the demo.',
      tip: 'Ask for the last time it went wrong, then what it led to, before you show anything.',
    },
    {
      id: 'decision_process',
      name: 'Maps the decision process',
      description: 'Names who decides, who influences, and the steps up to a signature.',
      good: 'Established that {colleague} holds the budget and when to bring the contract.',
      poor: 'It stayed open who signs; {colleague} was on the call and never asked.',
      tip: 'Ask how the last purchase of this size was decided, step by step.',
    },
  ],
};
const value: Section = {
  key: 'value_articulation',
  name: 'Value and demonstration',
  questions: [
    'How does this compare with what you do in {tool} today?',
    'Which part would your team use first, and why?',
  ],
  criteria: [
    {
      id: 'links_to_need',
      name: 'Links what is shown to a stated need',
      description: 'Every part that is shown answers something that the buyer said.',
      good: 'Showed {module} right after {buyer} had described the problem that it solves.',
      poor: 'Spoke for {6-11} minutes without a question.',
      tip: 'Before each screen say the sentence of theirs that it answers.',
    },
  ],
};
const objections: Section = {
  key: 'objection_handling',
  name: 'Objection handling',
  questions: ['When you say it is a lot of money, compared with what?', 'What did you like about {rival}?'],
  criteria: [
    {
      id: 'explores_objection',
      name: 'Explores before answering',
      description: 'Asks what is behind an objection before replying to it.',
      good: 'Asked whether it was price, effort or doubt, and got a straight answer.',
      poor: 'Answered the comparison with {rival} with a list of features.',
      tip: 'Reply to each objection with one question first.',
    },
  ],
};
const pricing: Section = {
  key: 'pricing_discussion',
  name: 'Pricing',
  questions: ['What would this have to save you to be an easy yes?'],
  criteria: [
    {
      id: 'frames_value_first',
      name: 'Frames value before price',
      description: 'The price comes after the cost of the problem is known.',
      good: 'Set {net} a year against the cost that {buyer} had named.',
      poor: 'Gave {price} a month within five minutes, with nothing beside it.',
      tip: 'Restate their number before you say yours.',
    },
  ],
};
const nextSteps: Section = {
  key: 'next_steps',
  name: 'Next steps',
  questions: ['Who needs to be in the next meeting for it to be useful?', 'What could you get me by {weekday}?'],
  criteria: [
    {
      id: 'books_next_meeting',
      name: 'Books the next meeting',
      description: 'Date, people and purpose are agreed before the call ends.',
      good: 'Booked {weekday} at {time} with the three people who matter.',
      poor: 'Ended with a promise to send something over.',
      tip: 'Open the calendar while they are still on the line.',
    },
  ],
};

/** A scorecard that every workspace has, and how its criteria are scored. */
export interface CardTemplate {
  readonly name: string;
  readonly sections: readonly Section[];
  readonly scale: 'points' | 'fraction' | 'words' | 'percent';
}

/** The card of a call that was scored without one. */
export const FALLBACK_CARD: CardTemplate = { name: 'Ad-hoc review', sections: [opening, discovery], scale: 'words' };
export const CARD_TEMPLATES = [
  { name: 'Discovery Call Excellence', sections: [opening, discovery, nextSteps], scale: 'points' },
  { name: 'Demo Delivery', sections: [opening, value, nextSteps], scale: 'fraction' },
  { name: 'Negotiation & Close', sections: [objections, pricing, nextSteps], scale: 'percent' },
  { name: 'MEDDICC Qualification', sections: [discovery, objections], scale: 'words' },
] as const satisfies readonly CardTemplate[];

/** The lines of an exchange. Each begins with who says it: `S` the seller, `B` the buyer, `C` a colleague of the buyer. */
export type Exchange = readonly string[];

/**
 * Reads exchanges from a script: one line per turn, a blank line between one exchange and the next. No line holds a colon
 * followed by a space, which would read as another speaker's name.
 */
function parseScript(script: string): readonly Exchange[] {
  const exchanges = script.trim().split('\n\n');
  return exchanges.map((exchange) => exchange.split('\n'));
}

export const OPENING = parseScript(`
S Hi {buyer}, thanks for making the time today. Can you hear me all right?
B Loud and clear. How are you, {seller}?
S Doing well. I would like to hear where things stand at {account}, show you the part of {product} that fits, and agree whether a next step makes sense. Anything you would add?
B I would add pricing. {colleague} will ask me about it the minute I hang up.
C Hello, {colleague} here, sorry I am late. The other meeting ran over.
`).flat();
export const EXCHANGES = parseScript(`
S So tell me what made you take this call now rather than six months ago.
B Honestly, {pain}. It came up in the last leadership meeting and it landed on my desk.

S How are you handling that today?
B Mostly with {tool} and a lot of goodwill. [Two people|Three people|One very patient analyst] on my side keep it alive.
S And what happens when they are on holiday?
B [Nothing happens. It waits.|We guess.|I do it myself on a Sunday night.]

S If you had to put a number on it, what does that cost you in a month?
B We looked at it. Somewhere between {cost_low} and {cost_high} thousand, if you count the rework.

S Besides yourself, who needs to be comfortable with a decision like this?
B {colleague} for the budget, and IT for the security review.
C I will want to see the contract before anyone signs anything.

S What does good look like a year from now?
B If we had {outcome}, I would call it a success.

S Let me share my screen. This is {module} with data that looks like yours. Can you see it?
B Yes, I see it. The [font is small|picture is a bit blurry|left half is cut off], but go on.
S Every open item is sorted by how much is at stake, straight from {system}, refreshed every {5-30} minutes.

B What happens when {system} is down? It happens more than I would like to admit.
S We keep the last good copy and mark it with its age, so you see that it is {10-55} minutes old instead of a blank page.

C Who can see this? We have contractors in {system2}.
S Access follows your groups, and every look is in the audit log.

S {reference} had the same start as you. They went from {18-40} percent to {4-12} percent in about {3-7} months.
B Same industry?
S Close to it, and about {seats} {unit}, so the size is right. I can put you in touch.

B I will be honest with you, {rival} is about {12-28} percent cheaper on paper.
S Then let us compare the first-year total side by side. If they still win, I will tell you so.

B I need to think about it.
S Of course. When you think about it, is it the price, the effort, or whether it works?
B The effort, mainly. I have no one to give it to.

B So what does it cost?
S For {seats} {unit} the list price is {price} a month each, so about {total} a year.
B That is more than I hoped.
S With an annual prepayment I can take {discount} percent off, which brings you to {net} a year.

C Payment terms are sixty days here. Not negotiable, I am afraid.
S Sixty is fine if we invoice on signature. Does that work?
`);
export const CLOSING = parseScript(`
S Let me play back what I heard. {pain_cap}, you want {outcome}, and it has to run by {month}. Did I miss anything?
B No, that is it. And {colleague} wants the contract early.
S As a next step I suggest a working session with your IT on {weekday} at {time}, with {system} on the table.
B Send me the invite, and I will get you the figures for last quarter.
S Then thank you both. You have my notes in your inbox by [five|six|tomorrow at noon].
B Thanks, {seller}. Speak on {weekday}.
S Speak then. Bye.
B Bye.
`).flat();
/** Short answers that fall in between. */
export const BACKCHANNEL: Exchange = [
  'B Right.',
  'B Mm-hm.',
  'S Got it.',
  'C Sure.',
  'S That makes sense.',
  'C One second, I was on mute. Yes, agreed.',
];
/** Lines for the calls that have them; the odd characters are as broken recorders leave them. */
export const SPECIAL_LINES = {
  plain: [],
  rightToLeft: [
    'B שלום, אני אענה רגע בעברית, אנחנו צריכים תשובה עד יום ראשון.',
    'C نعم، الميزانية حوالي {20-90} ألف دولار، ولكن القرار ليس لي وحدي.',
    'B بصراحة السعر مرتفع قليلا (مقارنة بـ {rival}).',
  ],
  emoji: [
    'B Love it 🎉 {module} is exactly what we asked for 👍🏽',
    'C My kids say hi 👨‍👩‍👧‍👦 sorry about the noise.',
    'S Greetings to the office in Montréal 🇨🇦 and thanks for staying up late 🙏',
  ],
  /** Combining marks, control characters, and half an emoji. */
  oddCharacters: [
    'B We call it the Zoe\u0308 re\u0301sume\u0301 internally, do not ask why.',
    'C The line broke up\u0007 for a second there.',
    'S I said page\u000Bbreak, not coffee break.',
    'B And then the chat cut off in the middle of a smiley \uD83D',
  ],
} as const satisfies Readonly<Record<string, Exchange>>;
