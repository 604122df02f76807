/** How a call begins, and what is asked in it. */
import { parseScript } from './script.ts';

export const OPENING = parseScript(`
S Hi {buyer}, thanks for making the time today. Can you hear me all right?
B Loud and clear. How are you, {seller}?

S Doing well. [Busy quarter end|Quiet week for once|Half the team is travelling], so I am glad this one stayed on the calendar.

S I had us down for {25-55} minutes. Does that still work, or do you have a hard stop?
B I have a hard stop at [half past|ten to|the top of the hour], so let us keep it tight.

S What I would like to do is hear where things stand at {account}, show you the part of {product} that fits, and agree whether a next step makes sense. Anything you would add?
B I would add pricing. {colleague} will ask me about it the minute I hang up.
S Fair enough, I will leave ten minutes for that.

C Hello, {colleague} here, sorry I am late. The other meeting ran over.
S No trouble at all, we are just setting the agenda.

S Before we start, are you happy for me to record this so I can send you the notes?
B Yes, go ahead.

B I read the one-pager you sent. {colleague} has not, so assume no background.
S That helps, thank you.
`);

export const DISCOVERY = parseScript(`
S So tell me what made you take this call now rather than six months ago.
B Honestly, {pain}. It came up in the last leadership meeting and it landed on my desk.

S How are you handling that today?
B Mostly with {tool} and a lot of goodwill. [Two people|Three people|One very patient analyst] on my side keep it alive.
S And what happens when they are on holiday?
B [Nothing happens. It waits.|We guess.|I do it myself on a Sunday night.]

S If you had to put a number on it, what does that cost you in a month?
B We looked at it. Somewhere between {cost_low} and {cost_high} thousand, if you count the rework.
S Is that a number your finance team would sign up to?
B {colleague} would argue with it, but not by much.

S Who feels this the most, day to day?
B The people on the floor, but it is my team that gets the phone calls.

S Walk me through the last time it went wrong.
B Two weeks ago. We found out on the {weekday} that {pain}, and by then there was nothing to be done about it.
S What did that lead to?
B An apology, a credit note of about {4-19} thousand, and a long email from our CEO.

S How many {unit} are we talking about in all?
B About {seats} today. If {month} goes as planned we add another {20-90}.

S What have you already tried?
B We had a look at {rival} last year. The trial was fine, the rollout plan was not.
S What was wrong with the plan?
B It needed {3-6} of our engineers for a quarter. We have two, and they are busy.

S Besides yourself, who needs to be comfortable with a decision like this?
B {colleague} for the budget, IT for the security review, and our CEO will want to see it once.
C I will want to see the contract before anyone signs anything.
S Understood. When do you like to be brought in, before or after the trial?
C Before. I hate surprises.

S What does good look like a year from now?
B If we had {outcome}, I would call it a success.
S And how would you measure that?
B The same report we look at every {weekday}. The line either moves or it does not.

S Is there a date by which this has to be in place?
B {month}. After that we are in our busy season and nobody will touch anything.

S Do you have a budget set aside, or would we have to make the case for one?
B There is {budget} in the plan for tooling. It is not all for this.

S What happens if you do nothing?
B We lose [another good person|one more large customer|a second year of arguing about it], I suspect. And I get asked about it again in {month}.

S Which systems would we have to talk to on day one?
B {system} for certain. {system2} would be nice, but I can live without it until {month}.
S Is {system} yours or does another team run it?
B Another team. They answer tickets within {2-9} days.

S You mentioned earlier that {pain}. Help me understand how often that comes up.
B Weekly. Some weeks it is every day.
S And has anyone outside your team noticed?
B Our customers have. That is the trouble.

C Can I jump in? For us in finance the real issue is that we only see it {5-20} days later.
S That is useful. So speed of reporting matters to you more than the detail?
C Both, but if I had to choose, speed.

S Out of everything you have told me, which one would you fix first?
B The first one. If {pain}, the rest hardly matters.

S How did you come up with {tool} in the first place?
B It was here before me. I think someone chose it in an afternoon.

S What would your team say if I asked them the same question?
B They would say we talk about it too much and do too little. They would have a point.
`);
