// A classic script that runs before anything is drawn: a page that is to be dark must not flash white.
try {
  const chosen = localStorage.getItem('evalgate.theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset['theme'] = chosen;
} catch {
  // Without storage the system's choice holds.
}
