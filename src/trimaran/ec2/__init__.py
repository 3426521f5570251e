"""The EC2 hull: Amazon's EC2 query API, its metadata service and an S3 stub over OpenStack.

The wire is driven by data: botocore's own EC2 service model parses requests
and renders answers, so an action (``kinds/``) is a plain function from a typed
request to the dict that boto3 will hand its user.
"""
