/** What the sample's scorecards ask of a call, section by section, and what a coach writes about it. */
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
  readonly criteria: readonly Criterion[];
  readonly questions: readonly string[];
}

export const EARLY_SECTIONS = {
  opening: {
    key: 'opening',
    name: 'Opening and agenda',
    criteria: [
      {
        id: 'sets_agenda',
        name: 'Sets a shared agenda',
        description: 'States the purpose and the time, and asks the buyer what they would add.',
        good: 'Agreed the agenda in the first two minutes and made room for what {buyer} wanted to add.',
        poor: 'Went straight into the product; {buyer} only raised pricing near the end because nobody had asked.',
        tip: 'Open with purpose, time and outcome, then ask what would make the meeting worth it for them.',
      },
      {
        id: 'builds_rapport',
        name: 'Builds rapport',
        description: 'Shows real interest in the person and the company before getting to business.',
        good: 'Picked up on the situation at {account} and used it later in the call.',
        poor: 'The small talk was generic and used up {3-6} minutes.',
        tip: 'Bring one specific observation about the company and ask one question about it.',
      },
    ],
    questions: [
      'What would make the next half hour worth your time?',
      'What has changed at {account} since we last spoke?',
    ],
  },
  discovery: {
    key: 'discovery',
    name: 'Discovery',
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
        id: 'quantifies_impact',
        name: 'Quantifies the impact',
        description: 'Helps the buyer put a number on the cost of the problem.',
        good: 'Had {buyer} work out the monthly cost aloud, and checked it with finance.',
        poor: 'No number was agreed, so the price had nothing to stand against.',
        tip: 'Offer a range and ask which end is closer; people correct a number more readily than they give one.',
      },
      {
        id: 'open_questions',
        name: 'Asks open questions and listens',
        description: 'Open questions outnumber closed ones and the buyer speaks more than half of the time.',
        good: '{buyer} spoke {54-68} percent of the discovery part.',
        poor: 'Three questions in one breath; {buyer} answered only the last.',
        tip: 'Ask one question, then count to three before you add anything.',
      },
    ],
    questions: [
      'What does it cost you when {pain}?',
      'Who else at {account} notices when this goes wrong?',
      'What happens if nothing changes before {month}?',
    ],
  },
  qualification: {
    key: 'qualification',
    name: 'Qualification',
    criteria: [
      {
        id: 'decision_process',
        name: 'Maps the decision process',
        description: 'Names who decides, who influences, and the steps up to a signature.',
        good: 'Established that {colleague} holds the budget and when to bring the contract.',
        poor: 'It stayed open who signs; {colleague} was on the call and never asked.',
        tip: 'Ask how the last purchase of this size was decided, step by step.',
      },
      {
        id: 'budget_and_timing',
        name: 'Confirms budget and timing',
        description: 'Knows what money is there, whose it is, and which date drives the purchase.',
        good: 'Confirmed {budget} in the plan and {month} as the date that matters.',
        poor: 'The date came up twice and was never tied to a plan.',
        tip: 'Work back from their date aloud and let them see how little time is left.',
      },
    ],
    questions: ['How was the last decision of this size made?', 'What has to be true for you to sign by {month}?'],
  },
  value: {
    key: 'value_articulation',
    name: 'Value and demonstration',
    criteria: [
      {
        id: 'links_to_need',
        name: 'Links what is shown to a stated need',
        description: 'Every part that is shown answers something that the buyer said.',
        good: 'Showed {module} right after {buyer} had described the problem that it solves.',
        poor: 'Showed five screens; two of them answered anything that was said.',
        tip: 'Before each screen say the sentence of theirs that it answers.',
      },
      {
        id: 'uses_proof',
        name: 'Uses relevant proof',
        description: 'Customer stories match in size or trade and come with figures.',
        good: 'The story of {reference} had a start, an end and a number.',
        poor: 'Named three customers and no result.',
        tip: 'Keep two stories a trade ready, each with before, after and how long it took.',
      },
      {
        id: 'checks_understanding',
        name: 'Checks for understanding',
        description: 'Stops to ask what stood out, and adapts.',
        good: 'Stopped after {module} and asked what stood out.',
        poor: 'Spoke for {6-11} minutes without a question.',
        tip: 'Stop after each part and ask how it compares with what they do today.',
      },
    ],
    questions: [
      'How does this compare with what you do in {tool} today?',
      'Which part would your team use first, and why?',
    ],
  },
} as const satisfies Readonly<Record<string, Section>>;
