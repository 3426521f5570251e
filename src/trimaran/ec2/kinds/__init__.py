"""The kinds of EC2 resources: what each is in OpenStack, and its actions.

An action is a public function named as boto3 names the method; dispatch finds
it by that name in any module here.  All other functions carry other names or
an underscore.
"""
