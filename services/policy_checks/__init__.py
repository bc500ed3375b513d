"""The checks of the fast reflection: small pure critics, each named after the question it answers.

A critic looks at a request and returns a finding or nothing. It has no clock, no store and no memory of its
own; whatever it may look at is in the request.
"""
